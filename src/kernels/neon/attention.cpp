// Parts of attention for one query vector, four positions or four dimensions at a time. Around them scalar/attention.h.
#include "kernels/scalar/attention.h"

#include "kernels/half.h"
#include "kernels/kv_order.h"
#include "kernels/neon/simd.h"
#include "kernels/neon/tier.h"
#include "kernels/query_tile.h"
#include "kernels/scalar/tier.h"

namespace braid::kernels::neon {
namespace {

using scalar::Query;

// Four elements that lie side by side, or in pairs of which `odd` picks one; of kInt8 the codes.
template <KvType kType>
float32x4_t load(const std::byte* from, bool odd) {
  if constexpr (kType == KvType::kF32) return vld1q_f32(floats_at(from));
  if constexpr (kType == KvType::kF16) return load_halves(from);
  if constexpr (kType == KvType::kBF16) {
    const uint16x4x2_t pairs = vld2_u16(reinterpret_cast<const std::uint16_t*>(from));
    return vreinterpretq_f32_u32(vshll_n_u16(odd ? pairs.val[1] : pairs.val[0], 16));
  }
  const int8x8_t codes = vreinterpret_s8_s32(vdup_n_s32(int_at(from)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(codes))));
}

template <KvType kType>
constexpr std::int64_t kBytes = kv_element_bytes(kType);

// Where a query's head lies at the four positions from `t` on, which one block holds.
struct Four {
  const KvLayer& kv;
  const std::byte* head;
  std::int32_t slot;

  Four(const Query& query, std::int32_t t)
      : kv(*query.args.kv), head(kv_bytes(kv, query.at().blocks, query.kv_head(), t)), slot(t % kv.block_tokens) {}

  float32x4_t scales(std::int64_t from, std::int32_t group) const {
    return load_halves(head + kv.scale_offset + from + (std::int64_t{group} * kv.block_tokens + slot) * 2);
  }
};

template <KvType kType>
float32x4_t chain(const Four& four, const float* query, std::int32_t begin, std::int32_t end) {
  float32x4_t sum = vdupq_n_f32(0.0F);
  for (std::int32_t d = begin; d < end; ++d) {
    const std::int64_t element = key_element(kType, four.kv.block_tokens, four.slot, d - d % kv_pair(kType));
    sum = vfmaq_n_f32(sum, load<kType>(four.head + element * kBytes<kType>, d % 2 != 0), query[d]);
  }
  return sum;
}

template <KvType kType>
float32x4_t scores_of(const Four& four, const float* query) {
  const std::int32_t head_dim = four.kv.head_dim;
  if constexpr (kType != KvType::kInt8) return chain<kType>(four, query, 0, head_dim);
  float32x4_t sum = vdupq_n_f32(0.0F);
  for (std::int32_t g = 0; g < kv_groups(head_dim); ++g) {
    const float32x4_t codes = chain<kType>(four, query, g * kKvGroup, std::min(head_dim, (g + 1) * kKvGroup));
    sum = g == 0 ? vmulq_f32(codes, four.scales(0, g)) : vfmaq_f32(sum, codes, four.scales(0, g));
  }
  return sum;
}

// Scores of the four positions from `t` on that the chunk's view has some of.
template <KvType kType>
void score_chunk(const Query& query, std::int32_t chunk, const ChunkView& view, float* scores) {
  for (std::int32_t t = chunk; t < view.end || t < view.sink_end; t += 4) {
    if (t >= view.sink_end && t + 4 <= view.begin) continue;
    vst1q_f32(scores + (t - chunk), scores_of<kType>(Four(query, t), query.values));
  }
}

// Adds what position `t` has of a weight to the values.
template <KvType kType>
void add_values(const Query& query, std::int32_t t, float weight, float* values) {
  const KvLayer& kv = *query.args.kv;
  constexpr std::int64_t kStep = kv_pair(kType) * kBytes<kType>;  // from a dimension to the next
  const Four at(query, t);
  const bool odd = at.slot % 2 != 0;
  const std::byte* from = at.head + kv.value_offset;
  from += value_element(kType, kv.head_dim, at.slot - at.slot % kv_pair(kType), 0) * kBytes<kType>;
  const std::byte* scales = at.head + kv.scale_offset + value_scale_step(kv) + at.slot * 2;
  float by = weight;
  for (std::int32_t d = 0; d < kv.head_dim; d += 4) {
    if (kType == KvType::kInt8 && d % kKvGroup == 0)
      by = weight * f16_to_float(load_half(scales + std::int64_t{d / kKvGroup} * kv.block_tokens * 2));
    const std::int32_t left = kv.head_dim - d;
    if (left >= 4) {
      vst1q_f32(values + d, vfmaq_n_f32(vld1q_f32(values + d), load<kType>(from + d * kStep, odd), by));
      continue;
    }
    std::byte rest[4 * kStep] = {};
    __builtin_memcpy(rest, from + d * kStep, static_cast<std::size_t>(left * kStep));
    const float32x4_t value = load<kType>(rest, odd);
    for (std::int32_t i = 0; i < left; ++i) values[d + i] = std::fma(by, value[i], values[d + i]);
  }
}

float capped(float score, float cap) { return cap == 0.0F ? score : cap * (1.0F - 2.0F / (scalar::exp(score * (2.0F / cap)) + 1.0F)); }

template <KvType kType>
void compute_typed_part(const Query& query, std::int32_t chunk, float* part) {
  const AttentionArgs& args = query.args;
  const ChunkView view = view_of_chunk(args, query.at().position, chunk);
  const auto for_each_seen = [&](const auto& visit) {
    for (std::int32_t t = chunk; t < view.sink_end; ++t) visit(t);
    for (std::int32_t t = std::max(view.begin, view.sink_end); t < view.end; ++t) visit(t);
  };
  float weights[kChunkTokens];
  score_chunk<kType>(query, chunk, view, weights);
  float top = -HUGE_VALF;
  for_each_seen([&](std::int32_t t) {
    float& score = weights[t - chunk];
    score = capped(score, args.score_cap);
    if (args.slopes != nullptr) score = std::fma(args.slopes[query.head], static_cast<float>(t - query.at().position), score);
    top = std::max(top, score);
  });
  scalar::Lanes sums;
  float* values = part + kPartHeader;
  std::fill_n(values, args.kv->head_dim, 0.0F);
  for_each_seen([&](std::int32_t t) {
    const float weight = scalar::exp(weights[t - chunk] - top);
    sums.sum[(t - chunk) % kLanes] += weight;
    add_values<kType>(query, t, weight, values);
  });
  part[0] = top;
  part[1] = sums.tree();
}

void compute_part(const Query& query, std::int32_t chunk, float* part) {
  with_kv_type(query.args.kv->type, [&]<KvType kType>() { compute_typed_part<kType>(query, chunk, part); });
}

}  // namespace

// A latent pool has no keys in vectors of positions.
void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  if (args.kv->latent) return scalar::attention(args, row_begin, row_end, kv_head_begin, kv_head_end);
  scalar::attend_rows<compute_part>(args, row_begin, row_end, kv_head_begin, kv_head_end);
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  if (args.kv->latent) return scalar::attention_part(args, row, kv_head, chunk, parts);
  scalar::attend_part<compute_part>(args, row, kv_head, chunk, parts);
}

}  // namespace braid::kernels::neon
