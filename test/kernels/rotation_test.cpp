#include "kernels/rotation.h"

#include "kernels/tiers.h"

#include <bit>
#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

TEST(Rotation, IsAWalshHadamardMatrixOverEight) {
  test::Random random(31);
  const std::vector<float> x = test::random_floats(random, kRotatedValues);
  std::vector<float> found(x.size());
  rotate(x.data(), found.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double expected = 0;
    for (std::size_t j = 0; j < x.size(); ++j) expected += (std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0) * static_cast<double>(x[j]) / 8;
    EXPECT_NEAR(found[i], expected, 1e-6);
  }
}

TEST(Rotation, TwiceIsNone) {
  test::Random random(32);
  const std::vector<float> x = test::random_floats(random, kRotatedValues);
  std::vector<float> found(x);
  rotate(found.data(), found.data());
  rotate(found.data(), found.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], x[i], 1e-6F);
}

TEST(Rotation, SharesAnOutlierOutAmongAllValues) {
  std::vector<float> x(kRotatedValues);
  x[17] = -8.0F;
  rotate(x.data(), x.data());
  for (const float value : x) EXPECT_EQ(std::abs(value), 1.0F);
}

}  // namespace
}  // namespace braid::kernels
