// Low-rank products: every tier as the scalar one, and the scalar one as the sums that they are.
#include "kernels/half.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <span>

namespace braid::kernels {
namespace {

class LowRank : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Tiers, LowRank, testing::ValuesIn(test::machine_tiers()), test::TierName());

struct Columns {
  std::vector<float> x, weights;
  std::vector<std::byte> stored;
  ColumnSumsArgs args;

  Columns(test::Random& random, std::int64_t rows, std::int64_t stride, bool half)
      : x(test::random_floats(random, rows)), weights(test::random_floats(random, rows * stride)) {
    if (half)
      for (float& weight : weights) weight = bf16_to_float(float_to_bf16(weight));
    stored.resize(weights.size() * (half ? 2 : 4));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::uint16_t bits = float_to_bf16(weights[i]);
      half ? std::memcpy(&stored[2 * i], &bits, 2) : std::memcpy(&stored[4 * i], &weights[i], 4);
    }
    args = {.x = {x.data()}, .weights = stored.data(), .half = half, .rows = rows, .stride = stride};
  }
};

TEST_P(LowRank, AddsUpColumns) {
  test::Random random(5);
  for (const bool half : {false, true}) {
    for (const std::int64_t rows : {1, 3, 4, 8, 17, 64, 203}) {
      for (const std::int64_t groups : {1, 2, 5}) {
        const std::int64_t stride = groups * kColumnGroup;
        Columns columns(random, rows, stride, half);
        std::vector<float> found(static_cast<std::size_t>(stride), -1.0F);
        std::vector<float> expected(found);
        columns.args.out[0] = expected.data();
        test::scalar_tier().column_sums(columns.args, 0, stride);
        columns.args.out[0] = found.data();
        GetParam()->column_sums(columns.args, 0, stride);
        EXPECT_EQ(found, expected) << rows << " rows, " << groups << " groups";
        columns.args.out[0] = found.data() + stride - kColumnGroup;  // of the last group alone
        GetParam()->column_sums(columns.args, stride - kColumnGroup, stride);
        EXPECT_EQ(found, expected);
        for (std::int64_t c = 0; c < stride; ++c) {
          double sum = 0.0;
          double size = 0.0;
          for (std::int64_t r = 0; r < rows; ++r) {
            const double term = double{columns.x[static_cast<std::size_t>(r)]} * columns.weights[static_cast<std::size_t>(r * stride + c)];
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(found[static_cast<std::size_t>(c)], sum, 1e-6 * size) << "a few roundings of the largest partial sum";
        }
      }
    }
  }
}

// Some sums beside each other have the bits that each has alone.
TEST_P(LowRank, AddsUpForSomeRowsAtOnce) {
  test::Random random(6);
  for (const bool half : {false, true}) {
    for (const std::int64_t rows : {1, 6, 16, 99}) {
      const std::int64_t stride = 3 * kColumnGroup;
      Columns columns(random, rows, stride, half);
      const std::vector<float> x = test::random_floats(random, rows * kMostSums);
      for (std::int64_t count = 1; count <= kMostSums; ++count) {
        std::vector<float> found(static_cast<std::size_t>(stride * kMostSums), -1.0F);
        std::vector<float> expected(found);
        for (std::int64_t i = 0; i < count; ++i) {
          columns.args.count = 1;
          columns.args.x[0] = x.data() + i * rows;
          columns.args.out[0] = expected.data() + i * stride;
          test::scalar_tier().column_sums(columns.args, 0, stride);
        }
        columns.args.count = count;
        for (std::int64_t i = 0; i < count; ++i) {
          columns.args.x[static_cast<std::size_t>(i)] = x.data() + i * rows;
          columns.args.out[static_cast<std::size_t>(i)] = found.data() + i * stride;
        }
        GetParam()->column_sums(columns.args, 0, stride);
        EXPECT_EQ(found, expected) << rows << " rows, " << count << " at once";
        columns.args.next = columns.stored.data();
        std::ranges::fill(found, -1.0F);
        GetParam()->column_sums(columns.args, 0, stride);
        columns.args.next = nullptr;
        EXPECT_TRUE(std::ranges::equal(std::span(found).first(static_cast<std::size_t>(count * stride)),
                                       std::span(expected).first(static_cast<std::size_t>(count * stride))))
            << "whatever is fetched beside it";
        test::scalar_tier().column_sums(columns.args, 0, stride);
        EXPECT_EQ(found, expected);
      }
    }
  }
}

// Wherever groups of columns lie.
TEST_P(LowRank, AddsUpGroupsOfColumnsOneAfterTheOther) {
  test::Random random(7);
  for (const bool half : {false, true}) {
    for (const std::int64_t rows : {1, 7, 16}) {
      constexpr std::int64_t kGroups = 5;
      constexpr std::int64_t kStride = kGroups * kColumnGroup;
      Columns columns(random, rows, kStride, half);
      const std::size_t bytes = half ? 2 : 4;
      std::vector<std::byte> grouped(columns.stored.size());
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t group = 0; group < kGroups; ++group)
          std::memcpy(&grouped[static_cast<std::size_t>((group * rows + row) * kColumnGroup) * bytes],
                      &columns.stored[static_cast<std::size_t>(row * kStride + group * kColumnGroup) * bytes], kColumnGroup * bytes);
      const std::vector<float> x = test::random_floats(random, rows * kMostSums);
      std::vector<float> found(static_cast<std::size_t>(kStride * kMostSums), -1.0F);
      std::vector<float> expected(found);
      for (std::size_t i = 0; i < static_cast<std::size_t>(kMostSums); ++i)
        columns.args.x[i] = x.data() + static_cast<std::int64_t>(i) * rows;
      for (const std::int64_t count : {std::int64_t{1}, kMostSums}) {
        columns.args.count = count;
        const auto sums = [&](const KernelTable& tier, std::vector<float>& out, std::int64_t begin) {
          for (std::size_t i = 0; i < static_cast<std::size_t>(kMostSums); ++i)
            columns.args.out[i] = out.data() + static_cast<std::int64_t>(i) * kStride + begin;
          tier.column_sums(columns.args, begin, kStride);
        };
        columns.args.weights = columns.stored.data();
        columns.args.stride = kStride;
        columns.args.group_stride = kColumnGroup;
        sums(*GetParam(), expected, 0);
        columns.args.weights = grouped.data();
        columns.args.stride = kColumnGroup;
        columns.args.group_stride = rows * kColumnGroup;
        for (const std::int64_t begin : {std::int64_t{0}, 2 * kColumnGroup}) {
          std::ranges::fill(found, -1.0F);
          sums(*GetParam(), found, begin);
          std::vector<float> scalar(found.size(), -1.0F);
          sums(test::scalar_tier(), scalar, begin);
          EXPECT_EQ(found, scalar);
          for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t c = begin; c < kStride; ++c)
              ASSERT_EQ(found[static_cast<std::size_t>(i * kStride + c)], expected[static_cast<std::size_t>(i * kStride + c)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::kernels
