// The registry of this machine's data folder.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "registry/creation.h"
#include "registry/folder_watch.h"
#include "registry/library.h"
#include "registry/remote.h"

#include <functional>
#include <memory>

namespace braid::registry {

struct LocalRegistryOptions {
  LibraryOptions library;
  RemoteOptions remote;
  WeightTools tools;
  bool watches = false;           // folders and manifests, while it lives
  std::function<void()> changed;  // called when something there has changed, on the watching thread; may be empty
};

Result<std::unique_ptr<ModelRegistry>> open_registry(LocalRegistryOptions options);

}  // namespace braid::registry
