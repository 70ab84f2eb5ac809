#include "perf/model/random_weights.h"

namespace braid::perf {

float RandomValues::next(float deviation) {
  // SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  std::int32_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int16_t>(z >> shift);
  return static_cast<float>(sum) * (deviation / 37837.0F);  // four uniforms of 16 bits: sqrt(4 / 12) * 65536
}

}  // namespace braid::perf
