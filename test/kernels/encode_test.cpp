#include "kernels/encode.h"

#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <span>

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

// Eight rows of 1024 values near a normal distribution, and the importance of their inputs: so easily made that other programs can, too.
struct KnownRows {
  static constexpr std::int64_t kRows = 8;
  static constexpr std::int64_t kColumns = 1024;
  std::vector<float> values, importance;

  KnownRows() {
    std::uint32_t state = 12345;
    const auto next = [&] { return state = state * 1664525U + 1013904223U; };
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      float sum = 0.0F;
      for (int part = 0; part < 4; ++part) sum += static_cast<float>(static_cast<std::int32_t>(next() >> 8U) - 8388608) * 0x1p-28F;
      values.push_back(sum);
    }
    for (std::int64_t i = 0; i < kColumns; ++i) importance.push_back(static_cast<float>(next() >> 24U) / 16.0F + 0.0625F);
  }
};

std::vector<std::byte> encoded(WeightType type, const KnownRows& rows, const float* importance) {
  const std::size_t row_bytes = stored_row_bytes(*weight_format(type), KnownRows::kColumns);
  std::vector<std::byte> stored(row_bytes * KnownRows::kRows);
  for (std::int64_t row = 0; row < KnownRows::kRows; ++row)
    encode_row_fitted(type, rows.values.data() + row * KnownRows::kColumns, importance, KnownRows::kColumns,
                      stored.data() + static_cast<std::size_t>(row) * row_bytes);
  return stored;
}

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = ~0U;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// ggml_quantize_chunk of llama.cpp (de3ff81) without importance, whose bits are gguf-py's.
TEST(EncodeFitted, TypesWithoutASearchHaveLlamaCppsBits) {
  const KnownRows rows;
  EXPECT_EQ(crc32(encoded(WeightType::kQ4_0, rows, nullptr)), 0xa0468bb5U);
  EXPECT_EQ(crc32(encoded(WeightType::kQ4_1, rows, nullptr)), 0xc5dd001aU);
  EXPECT_EQ(crc32(encoded(WeightType::kQ5_0, rows, nullptr)), 0x9c3f719fU);
  EXPECT_EQ(crc32(encoded(WeightType::kQ5_1, rows, nullptr)), 0x0b86a37bU);
  EXPECT_EQ(crc32(encoded(WeightType::kQ8_0, rows, nullptr)), 0x41557961U);
  EXPECT_EQ(crc32(encoded(WeightType::kMXFP4, rows, nullptr)), 0xdbe70a24U);
}

// Root of the mean squared error over that of the values, both weighed by importance where there is one.
double error_of(WeightType type, const KnownRows& rows, bool weighed) {
  const std::vector<std::byte> stored = encoded(type, rows, weighed ? rows.importance.data() : nullptr);
  std::vector<float> found(rows.values.size());
  dequantize_row(type, stored.data(), static_cast<std::int64_t>(found.size()), found.data());
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double weight = weighed ? static_cast<double>(rows.importance[i % KnownRows::kColumns]) : 1.0;
    error += weight * std::pow(static_cast<double>(found[i]) - static_cast<double>(rows.values[i]), 2);
    size += weight * std::pow(static_cast<double>(rows.values[i]), 2);
  }
  return std::sqrt(error / size);
}

// The errors of ggml_quantize_chunk (de3ff81) for the same rows, plain and weighed; ours are at most a hundredth larger.
TEST(EncodeFitted, ErrorsAreThoseOfLlamaCpp) {
  const struct {
    WeightType type;
    double plain, weighed;
  } errors[] = {
      {WeightType::kQ2_K, 0.292094, 0.252485},   {WeightType::kQ3_K, 0.147231, 0.137568}, {WeightType::kQ4_K, 0.069192, 0.066829},
      {WeightType::kQ5_K, 0.034869, 0.033172},   {WeightType::kQ6_K, 0.017250, 0.016349}, {WeightType::kIQ4_NL, 0.074560, 0.071841},
      {WeightType::kIQ4_XS, 0.075141, 0.072455}, {WeightType::kQ4_0, 0.082791, 0.076848}, {WeightType::kQ4_1, 0.075799, 0.065849},
      {WeightType::kQ5_0, 0.041489, 0.038441},   {WeightType::kQ5_1, 0.036943, 0.031770}};
  const KnownRows rows;
  for (const auto& error : errors) {
    EXPECT_LE(error_of(error.type, rows, false), 1.01 * error.plain) << weight_format(error.type)->name;
    EXPECT_LE(error_of(error.type, rows, true), 1.01 * error.weighed) << weight_format(error.type)->name;
  }
}

TEST(EncodeFitted, ZerosAndNonFiniteValuesDoNoHarm) {
  std::vector<float> values(512);
  const std::vector<float> importance(512, 1.0F);
  for (const WeightType type : test::kAllTypes) {
    std::vector<std::byte> stored(stored_row_bytes(*weight_format(type), 512));
    std::vector<float> found(512, 1.0F);
    for (const float* weights : {static_cast<const float*>(nullptr), importance.data()}) {
      std::ranges::fill(values, 0.0F);
      encode_row_fitted(type, values.data(), weights, 512, stored.data());
      dequantize_row(type, stored.data(), 512, found.data());
      EXPECT_EQ(found, values) << weight_format(type)->name;
      values[3] = std::numeric_limits<float>::quiet_NaN();
      values[70] = std::numeric_limits<float>::infinity();
      values[150] = -std::numeric_limits<float>::max();
      encode_row_fitted(type, values.data(), weights, 512, stored.data());
    }
  }
}

}  // namespace
}  // namespace braid::kernels
