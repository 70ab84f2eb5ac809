#include "kernels/numerics.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace braid::kernels {
namespace {

using test::Random;

class Elementwise : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Elementwise, testing::ValuesIn(test::machine_tiers()), test::TierName());

std::vector<std::int64_t> lengths() { return {1, 2, 7, 8, 15, 16, 17, 31, 48, 63, 64, 100, 576, 1023}; }

TEST_P(Elementwise, RmsNorm) {
  Random random(1);
  for (const std::int64_t n : lengths()) {
    const std::vector<float> x = test::random_floats(random, n, 3.0F);
    const std::vector<float> weight = test::random_floats(random, n);
    std::vector<float> found(x.size());
    std::vector<float> expected(x.size());
    GetParam()->rms_norm(x.data(), weight.data(), n, 1e-5F, found.data());
    test::scalar_tier().rms_norm(x.data(), weight.data(), n, 1e-5F, expected.data());
    ASSERT_TRUE(test::same_bits(found, expected)) << n;
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double value = x[i] * inverse * weight[i];
      ASSERT_NEAR(found[i], value, 1e-6 * (1 + std::fabs(value)));
    }
  }
}

TEST_P(Elementwise, LayerNorm) {
  Random random(8);
  for (const std::int64_t n : lengths()) {
    std::vector<float> x = test::random_floats(random, n, 3.0F);
    for (float& value : x) value += 20.0F;
    const std::vector<float> weight = test::random_floats(random, n);
    const std::vector<float> bias = test::random_floats(random, n);
    std::vector<float> found(x.size());
    std::vector<float> expected(x.size());
    GetParam()->layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5F, found.data());
    test::scalar_tier().layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5F, expected.data());
    ASSERT_TRUE(test::same_bits(found, expected)) << n;
    double mean = 0;
    double squares = 0;
    for (const float value : x) mean += value / static_cast<double>(n);
    for (const float value : x) squares += (value - mean) * (value - mean);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double value = (x[i] - mean) * inverse * weight[i] + bias[i];
      ASSERT_NEAR(found[i], value, 3e-6 * (1 + std::fabs(value) + inverse)) << n;  // the mean's rounding, times inverse
    }
  }
}

TEST_P(Elementwise, Rope) {
  Random random(2);
  for (const std::int32_t head_dim : {2, 6, 16, 24, 32, 64, 80, 128}) {
    for (const std::int32_t rotated : {head_dim, head_dim / 4 * 2}) {
      for (const bool interleaved : {false, true}) {
        std::vector<float> found = test::random_floats(random, 3 * head_dim);
        std::vector<float> expected = found;
        const std::vector<float> before = found;
        const std::vector<float> angles = test::random_floats(random, rotated / 2 + 1, 2.0F);
        std::vector<float> cos;
        std::vector<float> sin;
        for (int i = 0; i < rotated / 2; ++i) {
          cos.push_back(std::cos(angles[static_cast<std::size_t>(i)]));
          sin.push_back(std::sin(angles[static_cast<std::size_t>(i)]));
        }
        GetParam()->rope(found.data(), 3, head_dim, rotated, cos.data(), sin.data(), interleaved);
        test::scalar_tier().rope(expected.data(), 3, head_dim, rotated, cos.data(), sin.data(), interleaved);
        ASSERT_TRUE(test::same_bits(found, expected)) << head_dim << " " << rotated << " " << interleaved;
        for (std::size_t i = 0; i < cos.size(); ++i) {
          const std::size_t a = interleaved ? 2 * i : i;
          const std::size_t b = interleaved ? a + 1 : i + cos.size();
          ASSERT_NEAR(found[a], before[a] * cos[i] - before[b] * sin[i], 1e-5);
          ASSERT_NEAR(found[b], before[b] * cos[i] + before[a] * sin[i], 1e-5);
        }
      }
    }
  }
}

TEST_P(Elementwise, Swiglu) {
  Random random(3);
  for (const std::int64_t n : lengths()) {
    std::vector<float> gate = test::random_floats(random, n, 10.0F);
    gate[0] = n % 2 == 0 ? 200.0F : -200.0F;
    const std::vector<float> up = test::random_floats(random, n);
    std::vector<float> found(gate.size());
    std::vector<float> expected(gate.size());
    GetParam()->swiglu(gate.data(), up.data(), n, found.data());
    test::scalar_tier().swiglu(gate.data(), up.data(), n, expected.data());
    ASSERT_TRUE(test::same_bits(found, expected)) << n;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double value = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i];
      ASSERT_NEAR(found[i], value, 1e-6 * (1 + std::fabs(value)));
    }
  }
}

TEST_P(Elementwise, GeluAndGeglu) {
  Random random(9);
  for (const std::int64_t n : lengths()) {
    std::vector<float> gate = test::random_floats(random, n, 4.0F);
    gate[0] = n % 2 == 0 ? 200.0F : -200.0F;
    const std::vector<float> up = test::random_floats(random, n);
    std::vector<float> plain(gate.size());
    std::vector<float> gated(gate.size());
    std::vector<float> expected(gate.size());
    GetParam()->gelu(gate.data(), n, plain.data());
    test::scalar_tier().gelu(gate.data(), n, expected.data());
    ASSERT_TRUE(test::same_bits(plain, expected)) << n;
    GetParam()->geglu(gate.data(), up.data(), n, gated.data());
    test::scalar_tier().geglu(gate.data(), up.data(), n, expected.data());
    ASSERT_TRUE(test::same_bits(gated, expected)) << n;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double x = gate[i];
      const double value = 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
      ASSERT_NEAR(plain[i], value, 1e-6 * (1 + std::fabs(value)));
      ASSERT_NEAR(gated[i], value * up[i], 1e-6 * (1 + std::fabs(value * up[i])));
    }
  }
}

TEST_P(Elementwise, SoftCap) {
  Random random(10);
  for (const std::int64_t n : lengths()) {
    std::vector<float> found = test::random_floats(random, n, 40.0F);
    found[0] = n % 2 == 0 ? 1e9F : -1e9F;
    const std::vector<float> before = found;
    std::vector<float> expected = found;
    GetParam()->soft_cap(found.data(), n, 30.0F);
    test::scalar_tier().soft_cap(expected.data(), n, 30.0F);
    ASSERT_TRUE(test::same_bits(found, expected)) << n;
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], 30.0 * std::tanh(before[i] / 30.0), 30 * 3e-7);  // of the sum with 1, which tanh is taken from
  }
}

TEST_P(Elementwise, Add) {
  Random random(4);
  for (const std::int64_t n : lengths()) {
    std::vector<float> found = test::random_floats(random, n);
    const std::vector<float> before = found;
    const std::vector<float> y = test::random_floats(random, n);
    GetParam()->add(found.data(), y.data(), n);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(found[i], before[i] + y[i]);
  }
}

TEST_P(Elementwise, ArgmaxTakesTheLowestIndexOfTies) {
  Random random(5);
  for (const std::int64_t n : lengths()) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> x(static_cast<std::size_t>(n));
      for (float& value : x) value = static_cast<float>(test::uniform(random, -3, 3));
      ASSERT_EQ(GetParam()->argmax(x.data(), n), test::scalar_tier().argmax(x.data(), n)) << n;
    }
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> odd = {
      {-kInfinity, -kInfinity}, {kNan, 1.0F, kNan}, {kNan, kNan, -kInfinity}, {0.0F, -0.0F}, {-0.0F, 0.0F}, {1.0F, kInfinity, kInfinity}};
  const std::int64_t expected[] = {0, 1, 0, 0, 0, 1};
  for (std::size_t i = 0; i < odd.size(); ++i) {
    EXPECT_EQ(GetParam()->argmax(odd[i].data(), static_cast<std::int64_t>(odd[i].size())), expected[i]) << i;
  }
}

TEST_P(Elementwise, ExpSum) {
  Random random(6);
  for (const std::int64_t n : lengths()) {
    std::vector<float> x = test::random_floats(random, n, 20.0F);
    if (n > 2) x[2] = -std::numeric_limits<float>::infinity();
    std::vector<float> found(x.size());
    std::vector<float> expected(x.size());
    const float sum = GetParam()->exp_sum(x.data(), n, 0.7F, 1.3F, found.data());
    ASSERT_EQ(sum, test::scalar_tier().exp_sum(x.data(), n, 0.7F, 1.3F, expected.data()));
    ASSERT_TRUE(test::same_bits(found, expected)) << n;
    double total = 0;
    for (const float value : found) total += value;
    EXPECT_NEAR(sum, total, 1e-5 * total);
    EXPECT_EQ(GetParam()->exp_sum(x.data(), n, 0.7F, 1.3F, x.data()), sum);
    EXPECT_TRUE(test::same_bits(x, expected));
  }
}

TEST_P(Elementwise, MassesAbove) {
  Random random(7);
  for (const std::int64_t n : {1, 15, 16, 255, 256, 257, 1000, 4096}) {
    std::vector<float> x = test::random_floats(random, n, 1.0F);
    if (n > 3) x[2] = std::numeric_limits<float>::quiet_NaN();
    for (const float threshold : {-2.0F, 0.0F, 0.3F, x[0]}) {
      const auto runs = static_cast<std::size_t>((n + kMassRun - 1) / kMassRun);
      std::vector<double> found(runs);
      std::vector<double> expected(runs);
      GetParam()->masses_above(x.data(), n, threshold, found.data());
      test::scalar_tier().masses_above(x.data(), n, threshold, expected.data());
      ASSERT_EQ(found, expected) << n;
      for (std::size_t run = 0; run < runs; ++run) {
        double sum = 0;
        const std::size_t begin = run * static_cast<std::size_t>(kMassRun);
        for (std::size_t i = begin; i < std::min(x.size(), begin + static_cast<std::size_t>(kMassRun)); ++i) {
          if (x[i] > threshold) sum += x[i];
        }
        ASSERT_NEAR(found[run], sum, 1e-12) << n;
      }
    }
  }
}

TEST_P(Elementwise, ExpIsWithinTwoUlpsWhereItsResultIsNormal) {
  std::vector<float> x;
  for (float value = -88.5F; value <= 88.0F; value += 0.00317F) x.push_back(value);
  std::vector<float> y(x.size());
  GetParam()->exp_sum(x.data(), static_cast<std::int64_t>(x.size()), 1.0F, 0.0F, y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i]));
    if (x[i] < -87.0F) {
      ASSERT_EQ(y[i], 0.0F);
    } else {
      ASSERT_NEAR(y[i], expected, expected * 2.4e-7) << x[i];  // 2 ulps: the polynomial's error and its last three roundings
    }
  }
}

}  // namespace
}  // namespace braid::kernels
