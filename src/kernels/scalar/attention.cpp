// Attention of one query vector at a time. The context is cut into chunks of kChunkTokens positions, aligned to position 0. A chunk's
// part, over the positions t that the row sees, in ascending order:
//   score[t]  = chain over d of fma(query[d] * scale, key[d][t]); kInt8: such a chain over the codes of each group, times the
//               group's scale, added by fma from the first group on
//   score[t]  = cap * (1 - 2 / (exp(score[t] * (2 / cap)) + 1)), which is cap * tanh(score / cap), where there is a cap
//   score[t]  = fma(slope, t - p, score[t]) for a query at p, where there are slopes
//   top       = the largest score; weight[t] = exp(score[t] - top)
//   total     = sum of the weights by the lane tree, lane t mod 16
//   values[d] = chain over t of fma(weight[t], value[t][d]); kInt8: of fma(weight[t] * scale of the group, code)
// The first part is the sum; every later one is joined to it:
//   top'      = max(top, part's top); old = exp(top - top'); added = exp(part's top - top')
//   total     = fma(total, old, part's total * added), values[d] = fma(values[d], old, part's values[d] * added)
// A head's sink is joined last, as a part of that score, a total of 1 and no values:
//   total     = fma(total, old, added), values[d] = values[d] * old
// and out[d] = values[d] * (1 / total). A row's result depends on its position and its data only.
#include "kernels/attention_view.h"
#include "kernels/half.h"
#include "kernels/kv_order.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

// A key or value; of kInt8 the code.
float load(KvType type, const std::byte* base, std::int64_t i) {
  switch (type) {
    case KvType::kF32: {
      float value;
      std::memcpy(&value, base + i * 4, sizeof(value));
      return value;
    }
    case KvType::kF16:
      return f16_to_float(load_half(base + i * 2));
    case KvType::kBF16:
      return bf16_to_float(load_half(base + i * 2));
    case KvType::kInt8:
      return static_cast<float>(static_cast<std::int8_t>(base[i]));
  }
  return 0.0F;
}

// One position's keys and values of a KV head.
struct Token {
  const KvLayer& kv;
  const std::byte* head;
  std::int32_t slot;

  float key(std::int32_t d) const { return kv.latent ? value(d) : load(kv.type, head, key_element(kv.type, kv.block_tokens, slot, d)); }
  float value(std::int32_t d) const { return load(kv.type, head + kv.value_offset, value_element(kv.type, kv.head_dim, slot, d)); }
  float key_scale(std::int32_t group) const { return scale(0, group); }
  float value_scale(std::int32_t group) const { return scale(value_scale_step(kv), group); }

 private:
  float scale(std::int64_t from, std::int32_t group) const {
    return f16_to_float(load_half(head + kv.scale_offset + from + (std::int64_t{group} * kv.block_tokens + slot) * 2));
  }
};

Token token_at(const KvLayer& kv, const std::int32_t* blocks, std::int32_t kv_head, std::int32_t position) {
  const auto block = static_cast<std::size_t>(blocks[position / kv.block_tokens]);
  return {kv, kv.base + block * kv.block_stride + static_cast<std::size_t>(kv_head) * kv.head_stride, position % kv.block_tokens};
}

float chain(const Token& token, const float* query, std::int32_t begin, std::int32_t end) {
  float sum = 0.0F;
  for (std::int32_t d = begin; d < end; ++d) sum = std::fma(query[d], token.key(d), sum);
  return sum;
}

float score(const Token& token, const float* query, float cap) {
  const std::int32_t head_dim = token.kv.head_dim;
  float sum = 0.0F;
  if (token.kv.type == KvType::kInt8) {
    for (std::int32_t g = 0; g < kv_groups(head_dim); ++g) {
      const float codes = chain(token, query, g * kKvGroup, std::min(head_dim, (g + 1) * kKvGroup));
      sum = g == 0 ? codes * token.key_scale(g) : std::fma(codes, token.key_scale(g), sum);
    }
  } else {
    sum = chain(token, query, 0, head_dim);
  }
  return cap == 0.0F ? sum : cap * (1.0F - 2.0F / (exp(sum * (2.0F / cap)) + 1.0F));
}

struct Query {
  const AttentionArgs& args;
  std::int64_t row;
  std::int32_t head;
  const float* values;  // [head_dim], scaled

  const AttentionRow& at() const { return args.rows[row]; }
  std::int32_t kv_head() const { return head / (args.heads / args.kv->kv_heads); }
};

// One chunk's part, part_floats(head_dim) of them.
void compute_part(const Query& query, std::int32_t chunk, float* part) {
  const KvLayer& kv = *query.args.kv;
  const ChunkView view = view_of_chunk(query.args, query.at().position, chunk);
  const auto for_each_seen = [&](auto&& visit) {
    for (std::int32_t t = chunk; t < view.end; ++t)
      if (t < view.sink_end || t >= view.begin) visit(t - chunk, token_at(kv, query.at().blocks, query.kv_head(), t));
  };
  float weights[kChunkTokens];
  float top = -HUGE_VALF;
  for_each_seen([&](std::int32_t i, const Token& token) {
    weights[i] = score(token, query.values, query.args.score_cap);
    if (query.args.slopes != nullptr)
      weights[i] = std::fma(query.args.slopes[query.head], static_cast<float>(chunk + i - query.at().position), weights[i]);
    top = std::max(top, weights[i]);
  });
  Lanes sums;
  float* values = part + kPartHeader;
  std::fill_n(values, kv.head_dim, 0.0F);
  for_each_seen([&](std::int32_t i, const Token& token) {
    weights[i] = exp(weights[i] - top);
    sums.sum[i % kLanes] += weights[i];
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
      const float weight = kv.type == KvType::kInt8 ? weights[i] * token.value_scale(d / kKvGroup) : weights[i];
      values[d] = std::fma(weight, token.value(d), values[d]);
    }
  });
  part[0] = top;
  part[1] = sums.tree();
}

void join(const float* part, std::int32_t head_dim, float* sum) {
  const float top = std::max(sum[0], part[0]);
  const float old = exp(sum[0] - top);
  const float added = exp(part[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, part[1] * added);
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; ++d) sum[d] = std::fma(sum[d], old, part[d] * added);
}

void join_sink(float sink, std::int32_t head_dim, float* sum) {
  const float top = std::max(sum[0], sink);
  const float old = exp(sum[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, exp(sink - top));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; ++d) sum[d] *= old;
}

void finish(const Query& query, float* sum) {
  const std::int32_t head_dim = query.args.kv->head_dim;
  if (query.args.sinks != nullptr) join_sink(query.args.sinks[query.head], head_dim, sum);
  const float inverse = 1.0F / sum[1];
  float* out = query.args.out + query.row * query.args.out_stride + std::int64_t{query.head} * head_dim;
  for (std::int32_t d = 0; d < head_dim; ++d) out[d] = sum[kPartHeader + d] * inverse;
}

// The scaled query, in the caller's scratch.
Query load_query(const AttentionArgs& args, std::int64_t row, std::int32_t head) {
  const std::int32_t head_dim = args.kv->head_dim;
  auto* values = reinterpret_cast<float*>(args.scratch);
  const float* from = args.queries + row * args.query_stride + std::int64_t{head} * head_dim;
  for (std::int32_t d = 0; d < head_dim; ++d) values[d] = from[d] * args.scale;
  return {args, row, head, values};
}

}  // namespace

// A scaled query, the sum and a part.
std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim, bool /*latent*/) noexcept {
  return static_cast<std::size_t>(3 * part_floats(head_dim)) * sizeof(float);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  float* sum = reinterpret_cast<float*>(args.scratch) + part_floats(head_dim);
  float* part = sum + part_floats(head_dim);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int32_t position = args.rows[row].position;
    for (std::int32_t head = kv_head_begin * group; head < kv_head_end * group; ++head) {
      const Query query = load_query(args, row, head);
      std::int32_t chunk = first_chunk(args, position);
      compute_part(query, chunk, sum);
      for (chunk = next_chunk(args, position, chunk); chunk <= position; chunk = next_chunk(args, position, chunk)) {
        if (!sees(view_of_chunk(args, position, chunk), chunk)) continue;
        compute_part(query, chunk, part);
        join(part, head_dim, sum);
      }
      finish(query, sum);
    }
  }
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  const std::int32_t group = args.heads / args.kv->kv_heads;
  for (std::int32_t i = 0; i < group; ++i)
    compute_part(load_query(args, row, kv_head * group + i), chunk, parts + i * part_floats(args.kv->head_dim));
}

void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  float* sum = reinterpret_cast<float*>(args.scratch);
  for (std::int32_t i = 0; i < group; ++i, parts += part_floats(head_dim)) {
    std::copy_n(parts, part_floats(head_dim), sum);
    for (std::int64_t p = 1; p < count; ++p) join(parts + p * stride, head_dim, sum);
    finish({args, row, kv_head * group + i, nullptr}, sum);
  }
}

}  // namespace braid::kernels::scalar
