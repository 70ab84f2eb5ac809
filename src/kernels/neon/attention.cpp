// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 4 positions for scores (keys are stored transposed) and 4
// dimensions for the weighted values, so neither needs a sum across lanes.
#include "kernels/neon/kv_load.h"
#include "kernels/neon/latent_keys.h"
#include "kernels/neon/tier.h"
#include "kernels/query_tile.h"
#include "kernels/scalar/lanes.h"

namespace braid::kernels::neon {
namespace {

constexpr std::int32_t kVectors = kChunkTokens / 4;

using Tile = QueryTile<const std::byte*, kVectors>;

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors, over dimensions [begin, end): a group of kInt8, else
// all.
template <KvType kType, KeyForm kForm, int kQueries, int kKeys>
void score(const Tile& tile, int q, std::int32_t vector, std::int32_t begin, std::int32_t end) {
  constexpr KvType kKeyType = kForm == KeyForm::kUnpacked ? KvType::kF32 : kType;
  const std::int64_t step = kForm == KeyForm::kUnpacked ? 16 : tile.kv->block_tokens * kv_element_bytes(kType);
  const std::byte* at[kKeys];
#pragma GCC unroll 8
  for (int v = 0; v < kKeys; ++v) at[v] = tile.keys[vector + v];
  const float* query = tile.queries + q;
  float32x4_t sum[kQueries][kKeys];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) sum[i][v] = vdupq_n_f32(0.0F);
  }
  for (std::int32_t d = begin; d < end; ++d) {
    const bool odd = d % kv_pair(kKeyType) != 0;
    float32x4_t key[kKeys];
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) key[v] = load_kv<kKeyType>(at[v] + (d - odd) * step, odd);
#pragma GCC unroll 8
    for (int i = 0; i < kQueries; ++i) {
      const float scaled = query[d * kQueryTile + i];
#pragma GCC unroll 8
      for (int v = 0; v < kKeys; ++v) sum[i][v] = vfmaq_n_f32(sum[i][v], key[v], scaled);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) {
      float* out = tile.weights + (q + i) * kChunkTokens + (vector + v) * 4;
      if constexpr (kType == KvType::kInt8) {
        const float32x4_t scale = vld1q_f32(tile.key_scales + begin / kKvGroup * kChunkTokens + (vector + v) * 4);
        sum[i][v] = begin == 0 ? vmulq_f32(sum[i][v], scale) : vfmaq_f32(vld1q_f32(out), sum[i][v], scale);
      }
      vst1q_f32(out, sum[i][v]);
    }
  }
}

// Adds weight * value of positions [begin, end) to kDims vectors of the parts from dimension d on; `weights` are of the tile's
// form.
template <KvType kType, int kQueries, int kDims, bool kPartial>
void add_values(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  constexpr std::int64_t kPair = kv_pair(kType);
  const std::int64_t left = kv.head_dim - d;
  weights += q * kChunkTokens - tile.chunk;
  float32x4_t acc[kQueries][kDims];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) acc[i][v] = vld1q_f32(tile.part[q + i] + kPartHeader + d + v * 4);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + value_element(kType, kv.head_dim, slot - slot % kPair, d) * kBytes;
    for (; t < block_end; ++t) {
      const bool odd = t % kPair != 0;
      float32x4_t values[kDims];
#pragma GCC unroll 8
      for (int v = 0; v < kDims; ++v) values[v] = load_values<kType, kPartial>(value + v * 4 * kPair * kBytes, left, odd);
      if (kPair == 1 || odd) value += kPair * kv.head_dim * kBytes;
#pragma GCC unroll 8
      for (int i = 0; i < kQueries; ++i) {
        const float weight = weights[i * kChunkTokens + t];
#pragma GCC unroll 8
        for (int v = 0; v < kDims; ++v) acc[i][v] = vfmaq_n_f32(acc[i][v], values[v], weight);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) vst1q_f32(tile.part[q + i] + kPartHeader + d + v * 4, acc[i][v]);
  }
}

template <KvType kType, int kQueries>
void add_dims(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d, std::int32_t d_end) {
  constexpr int kDims = kQueries >= 4 ? 4 : 8;
  if (begin >= end) return;
  for (; d + kDims * 4 <= d_end; d += kDims * 4) add_values<kType, kQueries, kDims, false>(tile, q, weights, begin, end, d);
  for (; d + 4 <= d_end; d += 4) add_values<kType, kQueries, 1, false>(tile, q, weights, begin, end, d);
  if (d < d_end) add_values<kType, kQueries, 1, true>(tile, q, weights, begin, end, d);
}

// The vectors of the chunk that hold what a query sees.
struct SeenLanes {
  const ChunkView& view;
  std::int32_t chunk;
  std::int32_t first = view.sink_end > chunk ? 0 : (view.begin - chunk) / 4;
  std::int32_t last = ((view.begin < view.end ? view.end : view.sink_end) - chunk + 3) / 4;

  uint32x4_t lanes(std::int32_t v) const {
    const int32x4_t position = vaddq_s32(vdupq_n_s32(chunk + v * 4), int32x4_t{0, 1, 2, 3});
    const uint32x4_t window = vandq_u32(vcgeq_s32(position, vdupq_n_s32(view.begin)), vcltq_s32(position, vdupq_n_s32(view.end)));
    return vorrq_u32(window, vcltq_s32(position, vdupq_n_s32(view.sink_end)));
  }
};

void cap_scores(float cap, const SeenLanes& seen, float* scores) {
  const float32x4_t one = vdupq_n_f32(1.0F);
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const float32x4_t power = exp(vmulq_n_f32(vld1q_f32(scores + v * 4), 2.0F / cap));
    const float32x4_t tanh = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0F), vaddq_f32(power, one)));
    vst1q_f32(scores + v * 4, vmulq_n_f32(tanh, cap));
  }
}

// `behind`: the chunk's first position, counted from the query's.
void slope_scores(float slope, std::int32_t behind, const SeenLanes& seen, float* scores) {
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const float32x4_t away = vcvtq_f32_s32(vaddq_s32(vdupq_n_s32(behind + v * 4), int32x4_t{0, 1, 2, 3}));
    vst1q_f32(scores + v * 4, vfmaq_n_f32(vld1q_f32(scores + v * 4), away, slope));
  }
}

// The largest score that the query sees, of those that are no NaN. kWhole: it sees the whole chunk, and no mask is needed.
template <bool kWhole>
float top_of(const SeenLanes& seen, const float* scores) {
  const float32x4_t lowest = vdupq_n_f32(-__builtin_inff());
  float32x4_t largest = lowest;
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const float32x4_t own = vld1q_f32(scores + v * 4);
    largest = vmaxnmq_f32(kWhole ? own : vbslq_f32(seen.lanes(v), own, lowest), largest);
  }
  return vmaxnmvq_f32(largest);
}

// Scores become weights; returns the sum of those that the query sees.
template <bool kWhole>
float weigh(const SeenLanes& seen, float top, float* scores) {
  float32x4_t sums[kLanes / 4];
  for (float32x4_t& sum : sums) sum = vdupq_n_f32(0.0F);
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const float32x4_t weight = exp(vsubq_f32(vld1q_f32(scores + v * 4), vdupq_n_f32(top)));
    vst1q_f32(scores + v * 4, weight);
    const float32x4_t counted = kWhole ? weight : vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(weight), seen.lanes(v)));
    sums[v % (kLanes / 4)] = vaddq_f32(sums[v % (kLanes / 4)], counted);
  }
  return lane_tree(sums);
}

// Scores become weights, and the parts get their tops and totals, and no values yet. All tops come first, because each is a long chain of
// instructions.
template <int kQueries>
void soften(const Tile& tile, int q) {
  for (int i = q; i < q + kQueries; ++i) {
    const SeenLanes seen{tile.view[i], tile.chunk};
    float* scores = tile.weights + i * kChunkTokens;
    if (tile.args->score_cap != 0.0F) cap_scores(tile.args->score_cap, seen, scores);
    if (tile.args->slopes != nullptr) slope_scores(tile.slope[i], tile.chunk - tile.position[i], seen, scores);
    tile.part[i][0] = sees_all(tile.view[i], tile.chunk) ? top_of<true>(seen, scores) : top_of<false>(seen, scores);
  }
  for (int i = q; i < q + kQueries; ++i) {
    const SeenLanes seen{tile.view[i], tile.chunk};
    float* part = tile.part[i];
    float* scores = tile.weights + i * kChunkTokens;
    part[1] = sees_all(tile.view[i], tile.chunk) ? weigh<true>(seen, part[0], scores) : weigh<false>(seen, part[0], scores);
    for (std::int32_t d = 0; d < tile.kv->head_dim; d += 4) vst1q_f32(part + kPartHeader + d, vdupq_n_f32(0.0F));
  }
}

// Joins a part to the sum.
void join(const float* part, std::int32_t head_dim, float* sum) {
  const float top = part[0] > sum[0] ? part[0] : sum[0];
  const float old = scalar::exp(sum[0] - top);
  const float added = scalar::exp(part[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, part[1] * added);
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 4)
    vst1q_f32(sum + d, vfmaq_n_f32(vmulq_n_f32(vld1q_f32(part + d), added), vld1q_f32(sum + d), old));
}

void join_sink(float sink, std::int32_t head_dim, float* sum) {
  const float top = sink > sum[0] ? sink : sum[0];
  const float old = scalar::exp(sum[0] - top);
  sum[0] = top;
  sum[1] = std::fma(sum[1], old, scalar::exp(sink - top));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 4) vst1q_f32(sum + d, vmulq_n_f32(vld1q_f32(sum + d), old));
}

// Scores of queries [q, q + kQueries) with what they see of vectors [first, last) of the chunk at hand. Sums fill 24 registers.
template <KvType kType, KeyForm kForm, int kQueries>
void score_all(const Tile& tile, int q, std::int32_t first, std::int32_t last) {
  constexpr int kKeys = kQueries >= 4 ? 4 : 8;
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const SeenVectors seen = seen_vectors<4>(tile, q, q + kQueries);
  first = seen.first > first ? seen.first : first;
  last = seen.last < last ? seen.last : last;
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    std::int32_t vector = first;
    for (; vector + kKeys <= last; vector += kKeys) score<kType, kForm, kQueries, kKeys>(tile, q, vector, d, d_end);
    for (; vector < last; ++vector) score<kType, kForm, kQueries, 1>(tile, q, vector, d, d_end);
  }
}

// Of kInt8: the weights times the values' scales of the group that dimension d begins.
void scale_weights(const Tile& tile, const SeenVectors& seen, std::int32_t d, int first, int last) {
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const float32x4_t scale = vld1q_f32(tile.value_scales + d / kKvGroup * kChunkTokens + v * 4);
    for (int q = first; q < last; ++q) {
      const std::int64_t at = q * kChunkTokens + v * 4;
      vst1q_f32(tile.scaled + at, vmulq_f32(vld1q_f32(tile.weights + at), scale));
    }
  }
}

// The parts of queries [q, q + kQueries) of the chunk at hand, of their scores.
template <KvType kType, int kQueries>
void compute_parts(const Tile& tile, int q) {
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const GroupView<kQueries> view = view_of_group<kQueries>(tile, q);
  soften<kQueries>(tile, q);
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    if constexpr (kType == KvType::kInt8) scale_weights(tile, seen_vectors<4>(tile, q, q + kQueries), d, q, q + kQueries);
    const float* weights = kType == KvType::kInt8 ? tile.scaled : tile.weights;
    const auto add = [&](auto together, int at, std::int32_t begin, std::int32_t end) {
      add_dims<kType, decltype(together)::kCount>(tile, at, weights, begin, end, d, d_end);
    };
    split_ranges(view.sinks, q, tile.chunk, add);
    split_ranges(view.window, q, tile.chunk, add);
  }
}

// The scales of the chunk's positions up to `end`, as floats.
void load_chunk_scales(const Tile& tile, std::int32_t end) {
  const KvLayer& kv = *tile.kv;
  const std::int32_t groups = kv_groups(kv.head_dim);
  for (std::int32_t t = tile.chunk; t < end; t += 4) {
    const std::byte* scales = head_bytes(tile, t) + kv.scale_offset + t % kv.block_tokens * 2;
    for (std::int32_t g = 0; g < groups; ++g, scales += kv.block_tokens * 2) {
      vst1q_f32(tile.key_scales + g * kChunkTokens + t - tile.chunk, load_halves(scales));
      vst1q_f32(tile.value_scales + g * kChunkTokens + t - tile.chunk, load_halves(scales + value_scale_step(kv)));
    }
  }
}

// Queries [first, last), as many at a time as fit: with four vectors each, six have 24 of the 32 registers for sums. use(Together<n>, q).
template <class Use>
void share_out(int first, int last, const Use& use) {
  split_queries<6, 4, 3, 2, 1>(first, last, use);
}

// The parts of queries [first, last) of a latent pool.
template <KvType kType>
void compute_latent(Tile& tile, int first, int last) {
  constexpr std::int32_t kAtOnce = kUnpackedTokens / 4;
  const SeenVectors seen = seen_vectors<4>(tile, first, last);
  for (std::int32_t v = seen.first; v < seen.last; v += kAtOnce) {
    const std::int32_t v_end = v + kAtOnce < seen.last ? v + kAtOnce : seen.last;
    unpack_keys<kType>(tile, v, v_end);
    share_out(first, last,
              [&](auto together, int q) { score_all<kType, KeyForm::kUnpacked, decltype(together)::kCount>(tile, q, v, v_end); });
  }
  share_out(first, last, [&](auto together, int q) { compute_parts<kType, decltype(together)::kCount>(tile, q); });
}

template <KvType kType>
void compute_all(Tile& tile, int first, int last) {
  const std::int32_t end = tile.position[last - 1] + 1;
  if constexpr (kType == KvType::kInt8) load_chunk_scales(tile, end < tile.chunk + kChunkTokens ? end : tile.chunk + kChunkTokens);
  if (tile.kv->latent) return compute_latent<kType>(tile, first, last);
  const std::int64_t bytes = kv_element_bytes(kType) * kv_pair(kType);
  for (std::int32_t v = 0; v < kVectors && tile.chunk + v * 4 < end; ++v) {
    const std::int32_t position = tile.chunk + v * 4;
    tile.keys[v] = head_bytes(tile, position) + position % tile.kv->block_tokens * bytes;
  }
  share_out(first, last, [&](auto together, int q) {
    score_all<kType, KeyForm::kTogether, decltype(together)::kCount>(tile, q, 0, kVectors);
    compute_parts<kType, decltype(together)::kCount>(tile, q);
  });
}

void compute_chunk(Tile& tile, int first, int last) {
  with_kv_type(tile.kv->type, [&]<KvType kType> { compute_all<kType>(tile, first, last); });
}

void finish(const float* sum, std::int32_t head_dim, float* out) {
  const float inverse = 1.0F / sum[1];
  for (std::int32_t d = 0; d < head_dim; d += 4) store_first(out + d, head_dim - d, vmulq_n_f32(vld1q_f32(sum + kPartHeader + d), inverse));
}

struct Steps {
  using Tile = neon::Tile;
  static constexpr auto compute = compute_chunk;
  static constexpr auto join = neon::join;
  static constexpr auto join_sink = neon::join_sink;
  static constexpr auto finish = neon::finish;
};

}  // namespace

std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim, bool latent) noexcept {
  return tile_scratch_bytes(head_dim, latent);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  attend_rows<Steps>(args, row_begin, row_end, kv_head_begin, kv_head_end);
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  attend_part<Steps>(args, row, kv_head, chunk, parts);
}

void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept {
  join_parts<Steps>(args, row, kv_head, parts, count, stride);
}

}  // namespace braid::kernels::neon
