// Models from other servers, and to them.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "registry/library.h"
#include "registry/remote.h"

namespace braid::registry {

// From a registry, or from a hub where the name is of one: the model is here when all its files are.
Result<void> pull_model(Library& library, const RemoteOptions& options, const TransferWish& wish, const ProgressSink& progress);

Result<void> push_model(Library& library, const RemoteOptions& options, const TransferWish& wish, const ProgressSink& progress);

}  // namespace braid::registry
