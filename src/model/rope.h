// Rotary position embedding (Su et al. 2021) with the context extensions that GGUF files name: linear interpolation, YaRN (Peng et
// al. 2023), LongRoPE and Llama 3's per-dimension divisors. Every one of them is a list of frequencies and a magnitude.
#pragma once

#include "model/deterministic_math.h"
#include "model/model_shape.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

struct RopeFrequencies {
  std::vector<double> radians;  // for each rotated pair, per position
  double magnitude = 1.0;       // multiplies cos and sin
};

// What a pair turns by.
enum class RopeAxis : std::uint8_t { kPosition, kRow, kColumn };
std::vector<RopeAxis> rope_axes(const RopeParameters& rope);  // of each pair; empty: all by the position

// `divisors` is empty or has one value for each rotated pair.
RopeFrequencies rope_frequencies(const RopeParameters& rope, std::span<const float> divisors);

// cos and sin of any position in [0, context), composed in double from two small tables by the addition theorems: a few operations
// for each row of a step instead of a table of the whole context. Immutable.
class RopeTable {
 public:
  RopeTable(const RopeFrequencies& frequencies, std::int32_t context, std::vector<RopeAxis> axes = {});

  std::int32_t pairs() const { return pairs_; }
  void fill(std::int32_t position, float* cos, float* sin) const;  // [pairs]
  // Of a token whose row and column are so much further than its position.
  void fill(std::int32_t position, std::int32_t down, std::int32_t across, float* cos, float* sin) const;

 private:
  static constexpr std::int32_t kFine = 256;

  void fill_pair(std::int32_t position, std::int32_t pair, float* cos, float* sin) const;

  std::int32_t pairs_;
  double magnitude_;
  std::vector<SinCos> fine_;    // [kFine, pairs]: positions 0 to 255
  std::vector<SinCos> coarse_;  // [context / kFine, pairs]: multiples of 256
  std::vector<RopeAxis> axes_;  // [pairs], or empty
};

// One for each of model.rotary, and, where any has stretched divisors, as many again for stretched sequences. `divisors`, `stretched`: those of
// Weights.
std::vector<RopeTable> rope_tables(const ModelShape& model, std::span<const std::vector<float>> divisors,
                                   std::span<const std::vector<float>> stretched, std::int32_t context);

}  // namespace braid::model
