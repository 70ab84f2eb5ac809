#include "model/prequantized/coded_matrix.h"

#include "kernels/encode.h"
#include "kernels/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace braid::model {
namespace {

using kernels::WeightType;

constexpr std::int64_t kBlock = 32;        // values of the types that have codes as they are
constexpr std::int64_t kSampledRows = 16;  // of error()
constexpr float kRounded = 0x1p-11F;       // by which f16 rounds at most, where it has all its bits

// OCP 8-bit floats of 4 exponent and 3 mantissa bits, without infinities.
float e4m3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15U);
  const int mantissa = static_cast<int>(code & 7U);
  const float sign = (code & 0x80U) != 0 ? -1.0F : 1.0F;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  return sign *
         (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9) : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10));
}

// Powers of two.
float e8m0(unsigned code) { return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, static_cast<int>(code) - 127); }

constexpr std::array<float, 16> kE2M1 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                         -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

const std::array<float, 256>& all_e4m3() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (unsigned i = 0; i < all.size(); ++i) all[i] = e4m3(i);
    return all;
  }();
  return values;
}

float as_f16(float value) { return kernels::f16_to_float(kernels::float_to_f16(value)); }

// 0: f16 has it.
float f16_error(float value) {
  const float rounded = as_f16(value);
  return rounded == value ? 0.0F : std::fabs(rounded - value) / std::fabs(value);
}

float worst_f16_error(const GroupFloats& floats, std::int64_t rows, std::int64_t groups) {
  float worst = 0.0F;
  for (std::int64_t row = 0; row < rows; row += floats.row_stride == 0 ? rows : floats.rows_each)
    for (std::int64_t group = 0; group < (floats.group_stride == 0 ? 1 : groups); ++group)
      worst = std::max(worst, f16_error(floats.at(row, group)));
  return worst;
}

}  // namespace

unsigned PackedCodes::at(std::int64_t row, std::int64_t column) const {
  std::int64_t along = along_columns ? column : row;
  const std::int64_t other = (along_columns ? row : column) * other_stride;
  if (shuffled) {
    constexpr std::array<std::int64_t, 8> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};
    along = along / 8 * 8 + kPlaces[static_cast<std::size_t>(along % 8)];
  }
  // At most two bytes have it, of which the second may be the next word's first.
  const std::int64_t bit = along * bits;
  const std::byte* word = bytes.data() + other + bit / 32 * word_stride;
  const std::int64_t place = bit % 32 / 8;
  const auto shift = static_cast<unsigned>(bit % 8);
  unsigned code = std::to_integer<unsigned>(word[place]) >> shift;
  if (shift + static_cast<unsigned>(bits) > 8)
    code |= std::to_integer<unsigned>(place < 3 ? word[place + 1] : word[word_stride]) << (8 - shift);
  return code & ((1U << static_cast<unsigned>(bits)) - 1U);
}

float GroupFloats::at(std::int64_t row, std::int64_t group) const {
  const auto index = static_cast<std::size_t>(row / rows_each * row_stride + group * group_stride);
  switch (type) {
    case Type::kF32: {
      float value;
      std::memcpy(&value, bytes.data() + index * 4, sizeof value);
      return value * factor;
    }
    case Type::kF16:
      return kernels::f16_to_float(kernels::load_half(bytes.data() + index * 2)) * factor;
    case Type::kBF16:
      return kernels::bf16_to_float(kernels::load_half(bytes.data() + index * 2)) * factor;
    case Type::kE4M3:
      return all_e4m3()[std::to_integer<unsigned>(bytes[index])] * factor;
    case Type::kE8M0:
      return e8m0(std::to_integer<unsigned>(bytes[index])) * factor;
  }
  return 0.0F;
}

CodedMatrix::CodedMatrix(CodedParts parts) : parts_(std::move(parts)) { choose_type(); }

int CodedMatrix::zero_of(std::int64_t row, std::int64_t group) const {
  if (!parts_.zeros) return parts_.zero;
  const auto stored = static_cast<int>(parts_.zeros->at(row, group));
  const int sign_bit = 1 << (parts_.zeros->bits - 1);
  return (parts_.zeros_are_signed && stored >= sign_bit ? stored - 2 * sign_bit : stored) + parts_.zeros_plus;
}

// What is to be multiplied by the scale, of integers.
int CodedMatrix::number(std::int64_t row, std::int64_t column, int zero) const {
  const auto code = static_cast<int>(parts_.codes.at(row, column));
  const int sign_bit = 1 << (parts_.codes.bits - 1);
  return (parts_.is_signed && code >= sign_bit ? code - 2 * sign_bit : code) - zero;
}

void CodedMatrix::read(std::int64_t row, float* out) const {
  std::int64_t last_group = -1;
  int zero = 0;
  float scale = 0.0F;
  float bias = 0.0F;
  for (std::int64_t column = 0; column < parts_.columns; ++column) {
    const std::int64_t group = parts_.group_of.empty() ? column / parts_.group : parts_.group_of[static_cast<std::size_t>(column)];
    if (group != last_group) {
      zero = zero_of(row, group);
      scale = parts_.scales.at(row, group);
      bias = parts_.biases ? parts_.biases->at(row, group) : 0.0F;
      last_group = group;
    }
    float value = 0.0F;
    switch (parts_.numbers) {
      case Numbers::kIntegers:
        value = static_cast<float>(number(row, column, zero));
        break;
      case Numbers::kE2M1:
        value = kE2M1[parts_.codes.at(row, column)];
        break;
      case Numbers::kE4M3:
        value = all_e4m3()[parts_.codes.at(row, column)];
        break;
    }
    out[column] = parts_.biases ? value * scale + bias : value * scale;
  }
}

// The least and the most that is multiplied by a scale.
std::pair<int, int> CodedMatrix::range() const {
  int least_zero = parts_.zero;
  int most_zero = parts_.zero;
  if (parts_.zeros) {
    least_zero = std::numeric_limits<int>::max();
    most_zero = std::numeric_limits<int>::min();
    for (std::int64_t row = 0; row < parts_.rows; ++row)
      for (std::int64_t group = 0; group < groups(); ++group) {
        least_zero = std::min(least_zero, zero_of(row, group));
        most_zero = std::max(most_zero, zero_of(row, group));
      }
  }
  const int span = 1 << parts_.codes.bits;
  return {(parts_.is_signed ? -span / 2 : 0) - most_zero, (parts_.is_signed ? span / 2 : span) - 1 - least_zero};
}

// Integers are held as they are by a type that has as many, if f16 has their scales too, or nearly; everything else is rounded again.
void CodedMatrix::choose_type() {
  const bool whole = parts_.columns % kBlock == 0;
  const bool in_blocks = whole && parts_.group_of.empty() && (parts_.group % kBlock == 0 || groups() == 1);
  type_ = whole ? WeightType::kQ8_0 : WeightType::kF16;
  if (parts_.numbers == Numbers::kE4M3) {
    type_ = WeightType::kBF16;
  } else if (parts_.numbers == Numbers::kE2M1) {
    if (in_blocks && parts_.scales.type == GroupFloats::Type::kE8M0 && parts_.group == kBlock) type_ = WeightType::kMXFP4;
  } else if (in_blocks && worst_f16_error(parts_.scales, parts_.rows, groups()) > kRounded) {
    type_ = WeightType::kBF16;
  } else if (in_blocks && parts_.biases) {
    kept_ = parts_.codes.bits <= 5;
    if (kept_) type_ = parts_.codes.bits > 4 ? WeightType::kQ5_1 : WeightType::kQ4_1;
  } else if (in_blocks) {
    const auto [low, high] = range();
    kept_ = low >= -128 && high <= 127;
    if (low >= -16 && high <= 15) type_ = WeightType::kQ5_0;
    if (low >= -8 && high <= 7) type_ = WeightType::kQ4_0;
  }
}

void CodedMatrix::encode_blocks(std::int64_t row, std::byte* out) const {
  const int middle = type_ == WeightType::kQ4_0 ? 8 : type_ == WeightType::kQ5_0 ? 16 : type_ == WeightType::kQ8_0 ? 128 : 0;
  const auto block_bytes = static_cast<std::size_t>(kernels::weight_format(type_)->block_bytes);
  unsigned codes[kBlock];
  for (std::int64_t first = 0; first < parts_.columns; first += kBlock, out += block_bytes) {
    const std::int64_t group = first / parts_.group;
    const int zero = zero_of(row, group) - middle;
    for (std::int64_t i = 0; i < kBlock; ++i) codes[i] = static_cast<unsigned>(number(row, first + i, zero));
    kernels::encode_codes(type_, codes, parts_.scales.at(row, group), parts_.biases ? parts_.biases->at(row, group) : 0.0F, out);
  }
}

void CodedMatrix::encode(std::int64_t row, std::byte* out) const {
  if (kept_) return encode_blocks(row, out);
  std::vector<float> values(static_cast<std::size_t>(parts_.columns));
  read(row, values.data());
  kernels::encode_row(type_, values.data(), parts_.columns, out);
}

std::vector<std::span<const std::byte>> CodedMatrix::other_bytes() const {
  std::vector<std::span<const std::byte>> all = {parts_.scales.bytes, std::as_bytes(std::span(parts_.group_of))};
  if (parts_.zeros) all.push_back(parts_.zeros->bytes);
  if (parts_.biases) all.push_back(parts_.biases->bytes);
  return all;
}

double CodedMatrix::error() const {
  std::vector<float> meant(static_cast<std::size_t>(parts_.columns));
  std::vector<float> held(meant.size());
  std::vector<std::byte> stored(kernels::stored_row_bytes(*kernels::weight_format(type_), parts_.columns));
  double size = 0.0;
  double difference = 0.0;
  for (std::int64_t row = 0; row < parts_.rows; row += std::max<std::int64_t>(1, parts_.rows / kSampledRows)) {
    read(row, meant.data());
    encode(row, stored.data());
    kernels::dequantize_row(type_, stored.data(), parts_.columns, held.data());
    for (std::size_t i = 0; i < meant.size(); ++i) {
      size += static_cast<double>(meant[i]) * static_cast<double>(meant[i]);
      difference +=
          (static_cast<double>(held[i]) - static_cast<double>(meant[i])) * (static_cast<double>(held[i]) - static_cast<double>(meant[i]));
    }
  }
  return size > 0.0 ? std::sqrt(difference / size) : 0.0;
}

}  // namespace braid::model
