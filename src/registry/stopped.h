// How work ends that nobody wants any more.
#pragma once

#include "braid/result.h"

namespace braid::registry {

inline Error stopped() { return {ErrorCode::kCancelled, "it was stopped", ""}; }

}  // namespace braid::registry
