// Two panels of weights in the form that many rows multiply: group after group, codes as bytes and scales in vectors. For sources
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
  // Summing::kBlock: of each block.
  struct Block {
    __m512 scales[kPanels];
    __m512 magic[kPanels];  // -kRoundMagic times the scales
    __m512 minimums[kPanels];
  };
  Block blocks[kMostGroupBlocks];
  // The others: of the group, and in kParts of each part.
  __m512 scales[kPanels];
  __m512i multipliers[kMostParts][kPanels];
  __m512 minimum_scales[kPanels];
  __m512i minimum_pairs[kMinimumPairs][kPanels];
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
template <CodeForm kForm>
void expand_scales(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, int p, Group& group) {
  const std::byte* scales = scales_at(layout, panel, group.begin);
  const std::int64_t count = group.end - group.begin;
  if constexpr (kForm.summing == Summing::kBlock) {
    for (std::int64_t b = 0; b < count; ++b, scales += layout.block_scales) {
      Group::Block& block = group.blocks[b];
      block.scales[p] = load_scales(form.scales, scales, 0);
      block.magic[p] = _mm512_mul_ps(block.scales[p], _mm512_set1_ps(-kRoundMagic));
      if (form.codes.minimums) block.minimums[p] = load_scales(form.scales, scales, 1);
    }
    return;
  }
  group.scales[p] = load_supers(group_at(layout, panel, group.begin), 0);
  if constexpr (kForm.summing == Summing::kParts) {
    for (std::int64_t b = 0; b < count; ++b, scales += layout.block_scales) {
      for (int part = 0; part < kForm.parts; ++part)
        group.multipliers[b * kForm.parts + part][p] = load_subs<kForm.parts>(layout, scales, part, 0);
    }
  }
  if constexpr (kForm.summing == Summing::kParts && kForm.minimums) {
    group.minimum_scales[p] = load_supers(group_at(layout, panel, group.begin), 1);
    for (int pair = 0; pair < kGroupBlocks * kForm.parts / 2; ++pair)
      group.minimum_pairs[pair][p] = load_minimum_pair<kForm.parts>(layout, panel, group.begin, pair);
  }
}

}  // namespace
}  // namespace braid::kernels::avx512
