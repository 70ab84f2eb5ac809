#include <kernels/half.h>
#include <kernels/tiers.h>

namespace braid::kernels::test {

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
      put16(at, float_to_f16(value * 0.01F));
      for (std::size_t i = 2; i < static_cast<std::size_t>(format.block_bytes); ++i) {
        stored[at + i] = static_cast<std::byte>(random() & 0xFFU);
      }
    }
  }
  return stored;
}

}  // namespace braid::kernels::test
