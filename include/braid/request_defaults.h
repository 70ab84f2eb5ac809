// What the operator decides about requests that say nothing of it themselves.
#pragma once

#include "braid/speculation.h"
#include "braid/value.h"

#include <cstdint>
#include <optional>

namespace braid {

// Absent members leave a dialect's own default.
struct RequestDefaults {
  std::optional<float> temperature = {};
  std::optional<float> top_p = {};
  std::optional<std::int32_t> top_k = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  std::optional<std::uint64_t> seed = {};
  std::optional<std::int32_t> max_tokens = {};
  std::optional<bool> reasoning = {};  // absent: as the model's template does it
  Value template_kwargs = {};          // a dict, or null
  DraftMethod speculate = DraftMethod::kAuto;
  bool strict_parameters = false;  // names that no parameter has are refused
};

}  // namespace braid
