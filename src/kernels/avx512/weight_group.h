// Two panels of weights in the form that many rows multiply: group after group, codes as bytes and scales as integer multipliers. For sources
// of wide ISAs only.
#pragma once

#include "kernels/avx512/weight_codes.h"

namespace braid::kernels::avx512 {
namespace {

constexpr int kPanels = 2;
constexpr std::int64_t kMostParts = kMostGroupBlocks * 2;
constexpr std::int64_t kMinimumPairs = kGroupBlocks;  // of groups in ScaleForm::kSub, which are whole
constexpr std::int64_t kCodeBytes = 512;              // of a K block, a byte each

// A group of two panels.
struct Group {
  const std::byte* codes[kPanels] = {};
  std::int64_t begin = 0;  // K blocks
  std::int64_t end = 0;
  __m512 scales[kPanels];
  __m512i multipliers[kMostParts][kPanels];  // of each part; of grouped types none
  __m512 minimum_scales[kPanels];            // in ScaleForm::kSub, of
  __m512i minimum_pairs[kMinimumPairs][kPanels];
  __m512 minimums[kMostGroupBlocks][kPanels];  // of each block, of other types that have them
};

// Codes of the K blocks of `group`, a byte each.
template <CodeForm kForm>
void expand_codes(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, const Group& group, std::byte* to) {
  const __m512i table =
      kForm.table ? _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(form.table))) : _mm512_setzero_si512();
  const std::byte* codes = codes_at(layout, panel, group.begin);
  for (std::int64_t b = group.begin; b < group.end; ++b, codes += layout.block_codes, to += kCodeBytes) {
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      const __m512i low = _mm512_load_si512(codes + g % kForm.low_bits * 64);
      _mm512_store_si512(to + g * 64, group_codes<kForm>(low, codes, g, table));
    }
  }
}

// All of panel `p` in a group but its codes.
template <int kParts>
void expand_scales(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, int p, Group& group) {
  const ScaleForm scale_form = form.scales;
  const GroupScale scale = group_scale(scale_form, layout, panel, group.begin, group.end);
  group.scales[p] = scale.scale;
  if (scale_form == ScaleForm::kGroup) return;
  const std::byte* scales = scales_at(layout, panel, group.begin);
  for (std::int64_t b = 0; b < group.end - group.begin; ++b, scales += layout.block_scales) {
    for (int part = 0; part < kParts; ++part)
      group.multipliers[b * kParts + part][p] = load_multipliers<kParts>(scale_form, layout, scales, part, scale.inverse);
    if (form.minimum && scale_form != ScaleForm::kSub) group.minimums[b][p] = load_scales(scale_form, scales, 1);
  }
  if (!form.minimum || scale_form != ScaleForm::kSub) return;
  group.minimum_scales[p] = load_supers(group_at(layout, panel, group.begin), 1);
  for (int pair = 0; pair < kGroupBlocks * kParts / 2; ++pair)
    group.minimum_pairs[pair][p] = load_minimum_pair<kParts>(layout, panel, group.begin, pair);
}

}  // namespace
}  // namespace braid::kernels::avx512
