#include "kernels/encode.h"

#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

// Root of the mean squared error over that of the values.
double round_trip_error(WeightType type, const std::vector<float>& values) {
  const auto columns = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> stored(stored_row_bytes(*weight_format(type), columns));
  std::vector<float> found(values.size());
  encode_row(type, values.data(), columns, stored.data());
  dequantize_row(type, stored.data(), columns, found.data());
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(found[i]) - static_cast<double>(values[i]), 2);
    size += std::pow(static_cast<double>(values[i]), 2);
  }
  return size > 0 ? std::sqrt(error / size) : std::sqrt(error);
}

// The bounds are about a step of a code over the square root of 12, with the range of 16 or 32 normal numbers.
TEST(Encode, RoundTripsOfNormalValuesLoseWhatTheTypeLoses) {
  const struct {
    WeightType type;
    double most;
  } bounds[] = {{WeightType::kF32, 0.0},        {WeightType::kF16, 0.0003},  {WeightType::kBF16, 0.0025}, {WeightType::kQ8_0, 0.007},
                {WeightType::kQ4_0, 0.11},      {WeightType::kQ4_1, 0.09},   {WeightType::kQ5_0, 0.05},   {WeightType::kQ5_1, 0.043},
                {WeightType::kQ2_K, 0.42},      {WeightType::kQ3_K, 0.21},   {WeightType::kQ4_K, 0.10},   {WeightType::kQ5_K, 0.05},
                {WeightType::kQ6_K, 0.026},     {WeightType::kIQ4_NL, 0.10}, {WeightType::kIQ4_XS, 0.10}, {WeightType::kMXFP4, 0.16},
                {WeightType::kRotated8, 0.0085}};
  test::Random random(21);
  const std::vector<float> values = test::random_floats(random, 256 * 64, 0.02F);
  for (const auto& bound : bounds) EXPECT_LE(round_trip_error(bound.type, values), bound.most) << weight_format(bound.type)->name;
}

TEST(Encode, ZerosStayZeros) {
  const std::vector<float> zeros(512);
  for (const WeightType type : test::kAllTypes) EXPECT_EQ(round_trip_error(type, zeros), 0.0) << weight_format(type)->name;
}

TEST(Encode, OneSidedAndSteepRowsKeepTheirLargestValue) {
  std::vector<float> values(512);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = -std::exp2(static_cast<float>(i % 32) / 4.0F - 6.0F);
  const float largest = *std::min_element(values.begin(), values.end());
  for (const WeightType type : test::kAllTypes) {
    std::vector<std::byte> stored(stored_row_bytes(*weight_format(type), 512));
    std::vector<float> found(512);
    encode_row(type, values.data(), 512, stored.data());
    dequantize_row(type, stored.data(), 512, found.data());
    EXPECT_NEAR(found[31], largest, std::fabs(largest) * (type == WeightType::kMXFP4 ? 0.2F : 0.08F)) << weight_format(type)->name;
  }
}

// Not to what lies in other groups of the row.
TEST(Encode, NonFiniteValuesDoNoHarm) {
  std::vector<float> values(1024, 1.0F);
  const std::vector<float> plain = values;
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[70] = std::numeric_limits<float>::infinity();
  values[150] = -std::numeric_limits<float>::max();
  for (const WeightType type : test::kAllTypes) {
    const std::size_t bytes = stored_row_bytes(*weight_format(type), 1024);
    std::vector<std::byte> stored(bytes), expected(bytes);
    encode_row(type, values.data(), 1024, stored.data());
    encode_row(type, plain.data(), 1024, expected.data());
    EXPECT_TRUE(std::equal(stored.begin() + static_cast<std::ptrdiff_t>(bytes / 2), stored.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(bytes / 2)))
        << weight_format(type)->name;
  }
}

}  // namespace
}  // namespace braid::kernels
