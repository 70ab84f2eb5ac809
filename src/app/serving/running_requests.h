// What an update of weights may do to the requests of a model that wait or run.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"

#include <functional>
#include <optional>

namespace braid::app {

// Loop only.
struct RunningRequests {
  // Ends those that use such a thing.
  std::function<void(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason)> end;
  // Has them go on with what is given for what they use; nothing: they stay with it.
  std::function<void(const std::function<std::optional<AdapterUse>(const AdapterUse&)>& newer)> change;
};

}  // namespace braid::app
