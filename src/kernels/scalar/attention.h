// What attention of one query vector at a time does around the parts of its chunks, which attention.cpp defines; `compute_part` is a tier's.
// Internal linkage, because other tiers include it.
#pragma once

#include "kernels/attention_view.h"
#include "kernels/scalar/lanes.h"

#include <algorithm>
#include <cmath>

namespace braid::kernels::scalar {

struct Query {
  const AttentionArgs& args;
  std::int64_t row;
  std::int32_t head;
  const float* values;  // [head_dim], scaled

  const AttentionRow& at() const { return args.rows[row]; }
  std::int32_t kv_head() const { return head / (args.heads / args.kv->kv_heads); }
};

static inline void join(const float* part, std::int32_t head_dim, float* sum) {
  const float top = std::max(sum[0], part[0]);
  const float old = exp(sum[0] - top);
  const float added = exp(part[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, part[1] * added);
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; ++d) sum[d] = std::fma(sum[d], old, part[d] * added);
}

static inline void join_sink(float sink, std::int32_t head_dim, float* sum) {
  const float top = std::max(sum[0], sink);
  const float old = exp(sum[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, exp(sink - top));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; ++d) sum[d] *= old;
}

static inline void finish(const Query& query, float* sum) {
  const std::int32_t head_dim = query.args.kv->head_dim;
  if (query.args.sinks != nullptr) join_sink(query.args.sinks[query.head], head_dim, sum);
  const float inverse = 1.0F / sum[1];
  float* out = query.args.out + query.row * query.args.out_stride + std::int64_t{query.head} * head_dim;
  for (std::int32_t d = 0; d < head_dim; ++d) out[d] = sum[kPartHeader + d] * inverse;
}

// The scaled query, in the caller's scratch.
static inline Query load_query(const AttentionArgs& args, std::int64_t row, std::int32_t head) {
  const std::int32_t head_dim = args.kv->head_dim;
  auto* values = reinterpret_cast<float*>(args.scratch);
  const float* from = args.queries + row * args.query_stride + std::int64_t{head} * head_dim;
  for (std::int32_t d = 0; d < head_dim; ++d) values[d] = from[d] * args.scale;
  return {args, row, head, values};
}

// Computes the part of `chunk`, part_floats(head_dim) of them.
using ComputePart = void (*)(const Query& query, std::int32_t chunk, float* part);

template <ComputePart kComputePart>
static void attend_rows(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
                        std::int32_t kv_head_end) {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  float* sum = reinterpret_cast<float*>(args.scratch) + part_floats(head_dim);
  float* part = sum + part_floats(head_dim);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int32_t position = args.rows[row].position;
    for (std::int32_t head = kv_head_begin * group; head < kv_head_end * group; ++head) {
      const Query query = load_query(args, row, head);
      std::int32_t chunk = first_chunk(args, position);
      kComputePart(query, chunk, sum);
      for (chunk = next_chunk(args, position, chunk); chunk <= position; chunk = next_chunk(args, position, chunk)) {
        if (!sees(view_of_chunk(args, position, chunk), chunk)) continue;
        kComputePart(query, chunk, part);
        join(part, head_dim, sum);
      }
      finish(query, sum);
    }
  }
}

template <ComputePart kComputePart>
static void attend_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) {
  const std::int32_t group = args.heads / args.kv->kv_heads;
  for (std::int32_t i = 0; i < group; ++i)
    kComputePart(load_query(args, row, kv_head * group + i), chunk, parts + i * part_floats(args.kv->head_dim));
}

}  // namespace braid::kernels::scalar
