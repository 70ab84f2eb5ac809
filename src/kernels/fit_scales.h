// Scales for which codes of few bits stand for values with the least squared error, each weighed by a weight of its own.
#pragma once

#include <cstdint>

namespace braid::kernels {

// value ~ code * scale - minimum, codes in [0, most] and minimum not negative.
struct AffineFit {
  float scale = 0.0F;
  float minimum = 0.0F;
};
AffineFit fit_affine(const float* values, const float* weights, int count, float most) noexcept;

// value ~ code * scale, codes in [-half, half).
float fit_symmetric(const float* values, const float* weights, int count, float half) noexcept;

// value ~ code * scale, no value negative, codes in [0, most].
float fit_positive(const float* values, const float* weights, int count, float most) noexcept;

// value ~ (table[code] - bias) * scale, of a table of 16 that rises.
float fit_table(const float* values, const float* weights, int count, const std::uint8_t* table, float bias) noexcept;

}  // namespace braid::kernels
