// Low-rank products: every tier as the scalar one, and the scalar one as the sums that they are.
#include "kernels/half.h"
#include "kernels/tiers.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

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
        test::scalar_tier().column_sums(columns.args, 0, stride);
        EXPECT_EQ(found, expected);
      }
    }
  }
}

}  // namespace
}  // namespace braid::kernels
