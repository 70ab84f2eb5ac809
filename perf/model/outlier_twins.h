// Twins of a Llama-like model: the same function of its tokens, with outliers where real models have them. Outputs of one part (a norm, the
// products before down, values) are multiplied and the weights that read them divided.
#pragma once

#include "perf/model/float_model.h"

#include <cstdint>
#include <map>
#include <string>

namespace braid::perf {

// How many channels of each 256 a uniform profile takes, and what it multiplies them by.
struct Outliers {
  std::int64_t of_256 = 1;
  float by = 32.0F;
};

using Profile = void (*)(FloatModel& model, const Outliers& outliers);

// plain, norm, columns (the reverse of norm: uneven weights instead of activations), hidden, value, realistic.
const std::map<std::string, Profile>& twin_profiles();

// Each hidden unit `times` times, which share its output: a wider model, still the same function.
void repeat_hidden_units(FloatModel& model, std::int64_t times);

}  // namespace braid::perf
