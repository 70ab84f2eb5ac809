#include "kernels/tiers.h"

#include "kernels/half.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::test {
namespace {

// Whether a stored block of kRotated8 is the first of its group.
bool begins_group(std::int64_t block, std::int64_t inputs) {
  std::int64_t begin = 0;
  while (begin < block * 2) begin = group_end(kCodes8Grouped, begin, inputs / kBlockValues);
  return begin == block * 2;
}

}  // namespace

std::vector<std::size_t> scale_offsets(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    case WeightType::kQ2_K:
      return {80, 82};
    case WeightType::kQ3_K:
      return {108};
    case WeightType::kQ6_K:
      return {208};
    case WeightType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

std::vector<std::byte> random_stored(Random& random, WeightType type, std::int64_t outputs, std::int64_t inputs) {
  const WeightFormat& format = *weight_format(type);
  std::vector<std::byte> stored(stored_row_bytes(format, inputs) * static_cast<std::size_t>(outputs));
  std::normal_distribution<float> normal;
  const auto put16 = [&](std::size_t at, std::uint16_t bits) { std::memcpy(stored.data() + at, &bits, 2); };
  for (std::size_t at = 0; at < stored.size(); at += static_cast<std::size_t>(format.block_bytes)) {
    const float value = normal(random);
    if (type == WeightType::kF32) {
      std::memcpy(stored.data() + at, &value, 4);
    } else if (type == WeightType::kBF16) {
      put16(at, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    } else if (type == WeightType::kF16) {
      put16(at, float_to_f16(value));
    } else {
      for (std::size_t i = 0; i < static_cast<std::size_t>(format.block_bytes); ++i) {
        stored[at + i] = static_cast<std::byte>(random() & 0xFFU);
      }
      for (const std::size_t offset : scale_offsets(type)) put16(at + offset, float_to_f16(normal(random) * 0.01F));
      const auto block = static_cast<std::int64_t>(at % stored_row_bytes(format, inputs)) / format.block_bytes;
      if (type == WeightType::kRotated8 && !begins_group(block, inputs))
        std::memcpy(stored.data() + at, stored.data() + at - format.block_bytes, 2);
      if (type == WeightType::kMXFP4) stored[at] = static_cast<std::byte>(uniform(random, 110, 130));
    }
  }
  return stored;
}

}  // namespace braid::kernels::test
