#include "kernels/weight_type.h"

#include "kernels/half.h"
#include "kernels/tiers.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <vector>

namespace braid::kernels {
namespace {

TEST(Half, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(value))));
    } else {
      EXPECT_EQ(float_to_f16(value), half) << bits;
    }
  }
}

TEST(Half, RoundsToNearestWithTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = f16_to_float(static_cast<std::uint16_t>(bits));
    const float high = f16_to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(float_to_f16(middle), even) << bits;
    ASSERT_EQ(float_to_f16(std::nextafter(middle, low)), bits);
    ASSERT_EQ(float_to_f16(std::nextafter(middle, high)), bits + 1);
  }
  EXPECT_EQ(float_to_f16(65519.99F), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
}

TEST(WeightType, UnknownTypesHaveNoFormat) {
  EXPECT_EQ(weight_format(static_cast<WeightType>(4242)), nullptr);
  ASSERT_NE(weight_format(WeightType::kQ8_0), nullptr);
  EXPECT_EQ(stored_row_bytes(*weight_format(WeightType::kQ8_0), 64), 68U);
  EXPECT_EQ(stored_row_bytes(*weight_format(WeightType::kQ4_0), 64), 36U);
  EXPECT_EQ(stored_row_bytes(*weight_format(WeightType::kBF16), 3), 6U);
}

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(BRAID_SOURCE_DIR) + "/test/kernels/weight_types/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Files of make_fixtures.py: 2 rows of 256 values.
TEST(WeightType, EveryTypeDequantizesAsInGgml) {
  for (const WeightType type : test::kAllTypes) {
    if (type == WeightType::kRotated8) continue;  // our own
    const WeightFormat& format = *weight_format(type);
    const std::string stored = fixture(std::string(format.name) + ".stored");
    const std::string expected = fixture(std::string(format.name) + ".floats");
    ASSERT_EQ(stored.size(), 2 * stored_row_bytes(format, 256)) << format.name;
    std::vector<float> found(512);
    for (std::size_t row = 0; row < 2; ++row) {
      dequantize_row(type, reinterpret_cast<const std::byte*>(stored.data()) + row * stored.size() / 2, 256, found.data() + row * 256);
    }
    std::vector<float> floats(512);
    ASSERT_EQ(expected.size(), floats.size() * sizeof(float)) << format.name;
    std::memcpy(floats.data(), expected.data(), expected.size());
    EXPECT_TRUE(test::same_bits(found, floats)) << format.name;
  }
}

TEST(WeightType, Q8_0IsScaleTimesSignedCode) {
  std::vector<std::byte> block(34);
  block[1] = std::byte{0x38};  // 0.5
  for (int i = 0; i < 32; ++i) block[static_cast<std::size_t>(2 + i)] = static_cast<std::byte>(i * 8 - 128);
  std::vector<float> out(32);
  dequantize_row(WeightType::kQ8_0, block.data(), 32, out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(i * 8 - 128) * 0.5F);
}

TEST(WeightType, Q4_0HoldsTheFirstHalfInLowBits) {
  std::vector<std::byte> block(18);
  block[1] = std::byte{0xC0};  // -2
  for (int i = 0; i < 16; ++i) block[static_cast<std::size_t>(2 + i)] = static_cast<std::byte>(i | ((15 - i) << 4));
  std::vector<float> out(32);
  dequantize_row(WeightType::kQ4_0, block.data(), 32, out.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(i - 8) * -2.0F);
    EXPECT_EQ(out[static_cast<std::size_t>(i + 16)], static_cast<float>(7 - i) * -2.0F);
  }
}

TEST(WeightType, Bf16IsTheUpperHalfOfAFloat) {
  const std::uint16_t bits[2] = {0x3F80, 0xC040};
  float out[2];
  dequantize_row(WeightType::kBF16, reinterpret_cast<const std::byte*>(bits), 2, out);
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], -3.0F);
}

}  // namespace
}  // namespace braid::kernels
