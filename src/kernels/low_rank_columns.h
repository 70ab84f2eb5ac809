// Column sums, some vectors of columns at once. `Vector` is a tier's: its Type, kLanes (a divisor of kColumnGroup), kTogether (how many sums
// its registers hold beside each other), load, load_half, store, spread, add and fused (a * b + c). Internal linkage only.
#pragma once

#include "kernels/cache_hints.h"
#include "kernels/low_rank.h"

namespace braid::kernels {

template <class Vector>
struct LowRankColumns {
  static void sum(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) {
    args.half ? sum_with<true>(args, begin, end) : sum_with<false>(args, begin, end);
  }

 private:
  static constexpr int kChains = 4;
  static constexpr int kInGroup = kColumnGroup / Vector::kLanes;

  template <bool kHalf>
  static auto load(const std::byte* from, std::int64_t at) {
    if constexpr (kHalf) return Vector::load_half(from + 2 * at);
    if constexpr (!kHalf) return Vector::load(reinterpret_cast<const float*>(from) + at);
  }

  template <bool kHalf>
  static void sum_with(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) {
    args.next != nullptr ? sum_from<kHalf, true, Vector::kTogether>(args, 0, begin, end)
                         : sum_from<kHalf, false, Vector::kTogether>(args, 0, begin, end);
  }

  // As many together as there are, then fewer. What comes next is fetched beside the first of them.
  template <bool kHalf, bool kFetch, int kCount>
  static void sum_from(const ColumnSumsArgs& args, std::int64_t first, std::int64_t begin, std::int64_t end) {
    if (args.count - first >= kCount) {
      sum_some<kHalf, kFetch, kCount>(args, static_cast<std::size_t>(first), begin, end);
      for (first += kCount; args.count - first >= kCount; first += kCount)
        sum_some<kHalf, false, kCount>(args, static_cast<std::size_t>(first), begin, end);
      if constexpr (kCount > 1) sum_from<kHalf, false, kCount - 1>(args, first, begin, end);
    } else if constexpr (kCount > 1) {
      sum_from<kHalf, kFetch, kCount - 1>(args, first, begin, end);
    }
  }

  template <bool kHalf, bool kFetch, int kCount>
  static void sum_some(const ColumnSumsArgs& args, std::size_t first, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kBytes = kHalf ? 2 : 4;
    // An address, because what is there may be shorter.
    const std::uintptr_t next = kFetch ? reinterpret_cast<std::uintptr_t>(args.next) -
                                             static_cast<std::uintptr_t>(begin / kColumnGroup * args.group_stride * kBytes)
                                       : 0;
    // A line holds two rows of 16 halves.
    const bool fetches_odd_rows = !kHalf || args.stride != kColumnGroup;
    const float* x[kCount];
    for (int n = 0; n < kCount; ++n) x[n] = args.x[first + static_cast<std::size_t>(n)];
    constexpr int kParts = kCount == 1 ? kInGroup : 1;  // vectors of columns side by side
    for (std::int64_t column = begin; column < end; column += kParts * Vector::kLanes) {
      const std::int64_t at = column / kColumnGroup * args.group_stride + column % kColumnGroup;
      typename Vector::Type sums[kChains][kCount][kParts];
      for (auto& chain : sums)
        for (auto& parts : chain)
          for (auto& part : parts) part = Vector::spread(0.0F);
      const auto add = [&](std::int64_t row, int chain) {
        if (kFetch && (Vector::kLanes == kColumnGroup || column % kColumnGroup == 0) && (chain % 2 == 0 || fetches_odd_rows))
          __builtin_prefetch(reinterpret_cast<const void*>(next + static_cast<std::uintptr_t>((row * args.stride + at) * kBytes)), 0,
                             kSecondLevel);
        for (int i = 0; i < kParts; ++i) {
          const auto weight = load<kHalf>(args.weights, row * args.stride + at + i * Vector::kLanes);
          for (int n = 0; n < kCount; ++n) sums[chain][n][i] = Vector::fused(Vector::spread(x[n][row]), weight, sums[chain][n][i]);
        }
      };
      std::int64_t row = 0;
      for (; row + kChains <= args.rows; row += kChains) {
        add(row, 0);
        add(row + 1, 1);
        add(row + 2, 2);
        add(row + 3, 3);
      }
      // No chain is chosen by a variable: their sums stay in registers.
      if (row < args.rows) add(row, 0);
      if (row + 1 < args.rows) add(row + 1, 1);
      if (row + 2 < args.rows) add(row + 2, 2);
      for (int n = 0; n < kCount; ++n)
        for (int i = 0; i < kParts; ++i)
          Vector::store(args.out[first + static_cast<std::size_t>(n)] + column - begin + i * Vector::kLanes,
                        Vector::add(Vector::add(sums[0][n][i], sums[1][n][i]), Vector::add(sums[2][n][i], sums[3][n][i])));
    }
  }
};

}  // namespace braid::kernels
