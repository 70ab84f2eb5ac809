// What tells states how to change. Float64 inside, the same bits on every tier; a NaN stays one.
#pragma once

#include "model/deterministic_math.h"

#include <cmath>

namespace braid::model {

inline float softplus(float x) { return x <= 20.0F ? static_cast<float>(fixed_log(1.0 + fixed_exp(static_cast<double>(x)))) : x; }

// e to a power of at most 0.
inline float decay_of(float exponent) {
  return std::isnan(exponent) ? exponent : static_cast<float>(fixed_exp(static_cast<double>(exponent)));
}

}  // namespace braid::model
