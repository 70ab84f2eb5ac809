#include "model/rope.h"

#include <cmath>
#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

TEST(Rope, TableGivesTheAnglesOfEveryPosition) {
  const RopeParameters rope{.base = 10000.0, .rotated = 64};
  const RopeFrequencies frequencies = rope_frequencies(rope, {});
  const RopeTable table(frequencies, 131072);
  std::vector<float> cos(32), sin(32);
  for (const std::int32_t position : {0, 1, 255, 256, 257, 4095, 100001, 131071}) {
    table.fill(position, cos.data(), sin.data());
    for (std::size_t i = 0; i < 32; ++i) {
      const double angle = position * std::pow(10000.0, -static_cast<double>(i) / 32.0);
      EXPECT_NEAR(cos[i], std::cos(angle), 1e-7) << position;
      EXPECT_NEAR(sin[i], std::sin(angle), 1e-7) << position;
    }
  }
}

TEST(Rope, LinearScalingDividesPositions) {
  const auto plain = rope_frequencies({.rotated = 8}, {});
  const auto scaled = rope_frequencies({.rotated = 8, .scaling = RopeScaling::kLinear, .factor = 4.0}, {});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(scaled.radians[i], plain.radians[i] / 4.0);
  EXPECT_EQ(scaled.magnitude, 1.0);
}

TEST(Rope, YarnKeepsFastDimensionsAndInterpolatesSlowOnes) {
  const RopeParameters parameters{.rotated = 64, .scaling = RopeScaling::kYarn, .factor = 4.0, .original_context = 4096};
  const auto plain = rope_frequencies({.rotated = 64}, {});
  const auto yarn = rope_frequencies(parameters, {});
  EXPECT_DOUBLE_EQ(yarn.radians.front(), plain.radians.front());
  EXPECT_DOUBLE_EQ(yarn.radians.back(), plain.radians.back() / 4.0);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_LE(yarn.radians[i], plain.radians[i]);
    EXPECT_GE(yarn.radians[i], plain.radians[i] / 4.0 * (1.0 - 1e-15));
  }
  EXPECT_NEAR(yarn.magnitude, 1.0 + 0.1 * std::log(4.0), 1e-15);
}

TEST(Rope, DivisorsAndAttentionFactorApply) {
  const std::vector<float> divisors{1.0F, 2.0F, 4.0F, 8.0F};
  const auto plain = rope_frequencies({.rotated = 8}, {});
  const auto longrope = rope_frequencies({.rotated = 8, .scaling = RopeScaling::kLongrope, .attention_factor = 1.2}, divisors);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(longrope.radians[i], plain.radians[i] / static_cast<double>(divisors[i]));
  float cos = 0.0F, sin = 0.0F;
  RopeTable({.radians = {1.0}, .magnitude = longrope.magnitude}, 1).fill(0, &cos, &sin);
  EXPECT_FLOAT_EQ(cos, 1.2F);
  EXPECT_FLOAT_EQ(sin, 0.0F);
}

}  // namespace
}  // namespace braid::model::test
