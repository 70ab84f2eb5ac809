#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/rotation.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

namespace braid::kernels::scalar {
namespace {

// Rounds half to even; any float gives some code, so that a NaN is no undefined behaviour.
std::int8_t round_to_code(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value + kRoundMagic);
  return static_cast<std::int8_t>(static_cast<std::uint8_t>(static_cast<std::uint32_t>(bits - kRoundMagicBits) & 0xFFU));
}

// One group, or block: scale = amax / 127, codes = round(x * (127 / amax)). Magnitudes are compared as integers, of which those of NaNs are the
// largest: one makes the scale a NaN too, and so every product of the row.
float prepare_group(const float* x, std::int64_t values, std::int8_t* codes) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < values; ++i) largest = std::max(largest, std::bit_cast<std::int32_t>(std::fabs(x[i])));
  const auto amax = std::bit_cast<float>(largest);
  const bool zero = amax < kSmallestAmax;
  const float inverse = zero ? 0.0F : 127.0F / amax;
  for (std::int64_t i = 0; i < values; ++i) codes[i] = round_to_code(x[i] * inverse);
  return zero ? 0.0F : amax / 127.0F;
}

std::int32_t sum_of(const std::int8_t* codes, std::int64_t count) { return std::accumulate(codes, codes + count, 0); }

// The start of each part's sum, and what minimums multiply, of the group [begin, end) in Summing::kParts.
void sum_parts(const BlockForm& form, const PreparedLayout& layout, const std::int8_t* codes, std::int64_t begin, std::int64_t end,
               std::byte* prepared) {
  const std::int64_t part_values = kBlockValues / form.codes.parts;
  for (std::int64_t part = begin * form.codes.parts; part < end * form.codes.parts; ++part) {
    const std::int32_t sum = sum_of(codes + part * part_values, part_values);
    reinterpret_cast<std::int32_t*>(prepared + layout.starts)[part] = -form.bias * sum;
    if (form.codes.minimums) reinterpret_cast<std::int16_t*>(prepared + layout.sums)[part] = static_cast<std::int16_t>(sum);
  }
}

void prepare_groups(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* codes = reinterpret_cast<std::int8_t*>(prepared);
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::int32_t*>(prepared + layout.starts);
  const bool grouped = form.codes.summing == Summing::kGroup;
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0, end = 0; begin < blocks; begin = end) {
    end = group_end(form.codes, begin, blocks);
    const std::int64_t first = begin * kBlockValues;
    const std::int64_t count = (end - begin) * kBlockValues;
    float rotated[kMostWideGroupBlocks * kBlockValues];
    for (std::int64_t i = 0; grouped && i < count; i += kRotatedValues) rotate(x + first + i, rotated + i);
    *scales++ = prepare_group(grouped ? rotated : x + first, count, codes + first);
    if (grouped) {
      *starts++ = -form.bias * sum_of(codes + first, count);
    } else {
      sum_parts(form, layout, codes, begin, end, prepared);
    }
  }
}

void prepare_blocks(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* codes = reinterpret_cast<std::int8_t*>(prepared);
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
    scales[b] = prepare_group(x + b * kBlockValues, kBlockValues, codes + b * kBlockValues);
    const std::int32_t sum = sum_of(codes + b * kBlockValues, kBlockValues);
    reinterpret_cast<std::int32_t*>(prepared + layout.starts)[b] = kRoundMagicBits - form.bias * sum;
    if (form.codes.minimums) reinterpret_cast<float*>(prepared + layout.sums)[b] = scales[b] * static_cast<float>(sum);
  }
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  prepared += rows.begin * layout.bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr) {
      const auto prepare = form->codes.summing == Summing::kBlock ? prepare_blocks : prepare_groups;
      prepare(*form, layout, x, inputs, prepared);
    } else {
      std::memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::scalar
