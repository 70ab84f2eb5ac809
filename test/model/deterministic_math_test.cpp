#include "model/deterministic_math.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace braid::model::test {
namespace {

TEST(DeterministicMath, IsWithinAFewUnitsOfTheLibrary) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::uniform_real_distribution<double>(-100000.0, 100000.0)(random);
    const SinCos result = fixed_sin_cos(x);
    EXPECT_NEAR(result.sin, std::sin(x), 1e-15);
    EXPECT_NEAR(result.cos, std::cos(x), 1e-15);
    const double y = std::uniform_real_distribution<double>(-50.0, 50.0)(random);
    EXPECT_NEAR(fixed_exp(y) / std::exp(y), 1.0, 1e-15);
    const double z = std::exp(y);
    EXPECT_NEAR(fixed_log(z), std::log(z), 1e-14);
  }
}

}  // namespace
}  // namespace braid::model::test
