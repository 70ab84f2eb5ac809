// Column sums, some vectors of columns at once. `Vector` is a tier's: its Type, kLanes (a divisor of kColumnGroup), load, load_half, store,
// spread, add and fused (a * b + c). Internal linkage only.
#pragma once

#include "kernels/low_rank.h"

namespace braid::kernels {

template <class Vector>
struct LowRankColumns {
  static void sum(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) {
    args.half ? sum<true>(args, begin, end) : sum<false>(args, begin, end);
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
  static void sum(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin; column < end; column += kColumnGroup) {
      typename Vector::Type sums[kChains][kInGroup];
      for (auto& chain : sums)
        for (auto& part : chain) part = Vector::spread(0.0F);
      const auto add = [&](std::int64_t row, int chain) {
        const auto x = Vector::spread(args.x[row]);
        for (int i = 0; i < kInGroup; ++i)
          sums[chain][i] = Vector::fused(x, load<kHalf>(args.weights, row * args.stride + column + i * Vector::kLanes), sums[chain][i]);
      };
      std::int64_t row = 0;
      for (; row + kChains <= args.rows; row += kChains) {
        add(row, 0);
        add(row + 1, 1);
        add(row + 2, 2);
        add(row + 3, 3);
      }
      for (int chain = 0; row < args.rows; ++row, ++chain) add(row, chain);
      for (int i = 0; i < kInGroup; ++i)
        Vector::store(args.out + column - begin + i * Vector::kLanes,
                      Vector::add(Vector::add(sums[0][i], sums[1][i]), Vector::add(sums[2][i], sums[3][i])));
    }
  }
};

}  // namespace braid::kernels
