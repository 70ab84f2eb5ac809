#include "model/sampling/philox.h"

namespace braid::model {
namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double uniform_draw(std::uint64_t seed, std::uint32_t choice, std::int64_t position, std::uint32_t draw) {
  const auto index = static_cast<std::uint64_t>(position);
  const PhiloxCounter bits = philox4x32({low(index), high(index), choice, draw}, {low(seed), high(seed)});
  const std::uint64_t mantissa = (std::uint64_t{bits[0]} << 21) ^ (bits[1] >> 11);
  return static_cast<double>(mantissa) * 0x1p-53;
}

}  // namespace braid::model
