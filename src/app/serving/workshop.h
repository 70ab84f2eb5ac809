// Where models are made and taken apart while the server runs: elsewhere than on the loop and the strand.
#pragma once

#include "app/memory.h"
#include "app/options.h"
#include "app/serving/served_engine.h"
#include "braid/model_host.h"
#include "braid/result.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace braid::app {

// What a model will take.
struct ModelNeeds {
  std::uint64_t fixed = 0;                           // bytes: weights that nobody has packed yet, what it computes with, buffers
  bool has_pool = true;                              // of keys and values
  KvDemand kv = {};                                  // all but its bytes
  std::optional<std::uint64_t> pool_elsewhere = {};  // bytes of a pool for which the memory of this machine does not matter
};

// Loop only; one call at a time.
class Workshop {
 public:
  using OnProgress = std::function<void(const ModelProgress&)>;  // called on the loop

  virtual ~Workshop() = default;

  // Opens and checks its files. kBadFile, kUnsupported, kIo.
  virtual boost::asio::awaitable<Result<ModelNeeds>> look(const ServedModelOptions& model) = 0;

  // What the system leaves, `untouched` bytes having been promised.
  virtual boost::asio::awaitable<Result<std::uint64_t>> memory_left(std::uint64_t untouched) = 0;

  // Of the model that was looked at last. kDraining after cancel().
  virtual boost::asio::awaitable<Result<std::unique_ptr<ServedEngine>>> make(const ServedModelOptions& model, PoolBytes pool,
                                                                             OnProgress on_progress) = 0;

  // Returns when it has been destroyed.
  virtual boost::asio::awaitable<void> discard(std::shared_ptr<void> remains) = 0;

  // What is being made is given up, soon.
  virtual void cancel() = 0;
};

}  // namespace braid::app
