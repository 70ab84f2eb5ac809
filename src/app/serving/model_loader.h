// Loads all the models of a server on a thread of its own.
#pragma once

#include "app/encoder_folder.h"
#include "app/load_models.h"
#include "app/network_folder.h"
#include "app/options.h"
#include "app/service_manager.h"
#include "app/serving/catalogue.h"
#include "app/weight_shelf.h"
#include "braid/result.h"
#include "kernels/thread_team.h"
#include "net/http/file_descriptor.h"

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace braid::app {

// What is served from the start, in the order of the command line, and the team that computes all of it.
struct LoadedModels {
  std::unique_ptr<kernels::ThreadTeam> team;
  std::vector<LoadedModel> models;      // they compute with the team
  std::vector<LoadedEncoder> encoders;  // likewise
  std::vector<LoadedNetwork> networks;
  std::vector<FoundModel> found;  // all that can be asked for
  FindModels find;                // looks once more; empty: there will be no others
  WeightShelf shelf;              // with the weights of `models`
};

// What a server leaves that still runs.
struct Inheritance {
  std::vector<net::FileDescriptor> disk_locks;  // of the folders of --kv-disk, to which it still writes
  std::function<std::uint64_t()> untouched;     // bytes of memory that it will still take; any thread
};

// Loop only, but for its thread, which hands over what it has loaded and ends. While it runs, the io_context has work.
class ModelLoader {
 public:
  using Done = std::function<void(Result<LoadedModels>)>;

  // All outlive it.
  ModelLoader(boost::asio::io_context& loop, const ServeOptions& options, const ServiceManager& manager);
  ~ModelLoader();
  ModelLoader(const ModelLoader&) = delete;
  ModelLoader& operator=(const ModelLoader&) = delete;

  // Once. `done` is called on the loop.
  void start(Inheritance inherited, std::shared_ptr<ModelRegistry> registry, Done done);

  bool is_loading() const { return thread_.joinable(); }

 private:
  Result<LoadedModels> load(Inheritance inherited, std::shared_ptr<ModelRegistry> registry) const;

  boost::asio::io_context& loop_;
  const ServeOptions& options_;
  const ServiceManager& manager_;
  std::thread thread_;
};

}  // namespace braid::app
