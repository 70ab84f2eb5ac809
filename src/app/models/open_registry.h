// The registry of this machine's models, with what the other folders do for it.
#pragma once

#include "app/options.h"
#include "braid/model_registry.h"
#include "braid/result.h"

#include <functional>
#include <memory>

namespace braid::app {

Result<std::shared_ptr<ModelRegistry>> open_registry(const DataOptions& options);

// For `braid serve`: with folders watched, and what is used no more tidied up. `changed` is called when models have come or gone, on a thread
// of the registry's. Null, with a line in the log, where the folder is not one that was asked for and cannot be used.
Result<std::shared_ptr<ModelRegistry>> registry_to_serve(const ServeOptions& options, std::function<void()> changed);

}  // namespace braid::app
