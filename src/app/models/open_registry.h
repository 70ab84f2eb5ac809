// The registry of this machine's models, with what the other folders do for it.
#pragma once

#include "app/options.h"
#include "braid/model_registry.h"
#include "braid/result.h"

#include <memory>

namespace braid::app {

// `serves`: folders are watched, and what is used no more is tidied up.
Result<std::shared_ptr<ModelRegistry>> open_registry(const DataOptions& options, bool serves);

// For `braid serve`: null, with a line in the log, where the folder is not one that was asked for and cannot be used.
Result<std::shared_ptr<ModelRegistry>> registry_to_serve(const DataOptions& options);

}  // namespace braid::app
