#include <kernels/numerics.h>
#include <kernels/packed_layout.h>
#include <kernels/scalar/tier.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

// Rounds half to even; any float gives some code, so that a NaN is no undefined behaviour.
std::int8_t round_to_code(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value + kRoundMagic);
  return static_cast<std::int8_t>(static_cast<std::uint8_t>(static_cast<std::uint32_t>(bits - kRoundMagicBits) & 0xFFU));
}

// scale = amax / 127, codes = round(x * (127 / amax))
float prepare_block(const float* x, std::int8_t* codes) {
  float amax = 0.0F;
  for (int i = 0; i < kBlockValues; ++i) amax = std::fabs(x[i]) > amax ? std::fabs(x[i]) : amax;
  const bool zero = amax < kSmallestAmax;
  const float inverse = zero ? 0.0F : 127.0F / amax;
  for (int i = 0; i < kBlockValues; ++i) codes[i] = round_to_code(x[i] * inverse);
  return zero ? 0.0F : amax / 127.0F;
}

// Of each part: start = -bias * sum of codes, and sum = scale * sum of codes where the type has minimums.
void prepare_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* codes = reinterpret_cast<std::int8_t*>(prepared);
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::int32_t*>(prepared + layout.starts);
  auto* sums = reinterpret_cast<float*>(prepared + layout.sums);
  const int part_values = static_cast<int>(kBlockValues) / form.codes.parts;
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
    scales[b] = prepare_block(x + b * kBlockValues, codes + b * kBlockValues);
    for (int part = 0; part < form.codes.parts; ++part) {
      std::int32_t sum = 0;
      for (int i = 0; i < part_values; ++i) sum += codes[b * kBlockValues + part * part_values + i];
      *starts++ = -form.bias * sum;
      if (form.minimum) *sums++ = scales[b] * static_cast<float>(sum);
    }
  }
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  for (std::int64_t r = 0; r < rows; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr) {
      prepare_row(*form, layout, x, inputs, prepared);
    } else {
      std::memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::scalar
