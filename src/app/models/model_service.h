// The models of this machine for the command line: through a server that runs, or without one.
#pragma once

#include "app/options.h"
#include "braid/model_registry.h"
#include "braid/result.h"
#include "braid/value.h"

#include <memory>
#include <string>

namespace braid::app {

class ModelService {
 public:
  virtual ~ModelService() = default;

  // Documents as the server's routes give them.
  virtual Result<Value> list(const std::string& part_of_name) = 0;        // GET /v1/registry
  virtual Result<Value> show(const std::string& name, bool verbose) = 0;  // POST /api/show
  virtual Result<Value> running() = 0;                                    // GET /api/ps; kModelNotLoaded where there is no server
  virtual Result<Value> status() = 0;                                     // {"server":URL or null,"data_folder":…,…}

  virtual Result<void> stop(const std::string& name) = 0;  // unloads it; kModelNotLoaded where there is no server
  virtual Result<void> copy(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove(const std::string& name) = 0;
  virtual Result<std::string> put_file(const std::string& path, const ProgressSink& progress) = 0;  // its digest
  virtual Result<void> create(const ModelRecipe& recipe, const ProgressSink& progress) = 0;
  virtual Result<void> pull(const TransferWish& wish, const ProgressSink& progress) = 0;
  virtual Result<void> push(const TransferWish& wish, const ProgressSink& progress) = 0;
};

// Of the server at `host`, if it is not empty, or else of the one that has the data folder open, or else of the folder itself.
Result<std::unique_ptr<ModelService>> find_model_service(const DataOptions& data, const std::string& host);

std::unique_ptr<ModelService> remote_service(const std::string& url, const DataOptions& data);
Result<std::unique_ptr<ModelService>> local_service(const DataOptions& data);

}  // namespace braid::app
