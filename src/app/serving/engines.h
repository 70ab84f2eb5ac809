// All that is computed with in a server: one strand and its team, the models that take turns on it, and small networks.
#pragma once

#include "app/options.h"
#include "app/serving/catalogue.h"
#include "app/serving/loading_thread.h"
#include "app/serving/model_loader.h"
#include "app/serving/model_slots.h"
#include "app/serving/network_predictor.h"
#include "app/serving/network_weights.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/http/file_descriptor.h"
#include "sched/compute_strand.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::app {

// Loop only. Destroyed after the server whose sessions hold models, and before the io_context.
class Engines {
 public:
  struct Hooks {
    std::function<void()> on_busy;     // a step is posted while none was out
    std::function<void()> on_changed;  // directory() is another one
  };

  // What of the options contradicts itself is an error. `options` outlive them.
  static Result<std::unique_ptr<Engines>> create(boost::asio::io_context& loop, LoadedModels models, const ServeOptions& options,
                                                 Hooks hooks);

  // What is loaded. Valid until the loop goes on.
  ModelDirectory directory() const;
  std::string broken() const { return slots_->broken(); }  // ModelSlots

  // What can be asked for has changed.
  void look_again() { slots_->look_again(); }
  ModelHost& host() { return *slots_; }
  Pausable& compute() { return strand_; }
  // A line or two for each model, for whoever started the server.
  std::vector<std::string> descriptions() const;

  // Those of --lora.
  boost::asio::awaitable<Result<void>> load_adapters();
  boost::asio::awaitable<Result<void>> warm_up();

  // Whether steps are out, and how long the one that runs has been running.
  bool is_busy() const { return !strand_.idle(); }
  double running_step_seconds() const { return strand_.running_seconds(); }

  // "3 sequences run and 1 waits, 10 of 20 KV blocks are free", of each model.
  std::string state() const;

  // No new work; true when all that was accepted has ended, false when the deadline came first.
  boost::asio::awaitable<bool> drain(std::chrono::steady_clock::time_point until);
  void abort_remaining(const Error& reason);

  // Disk tiers that are still the server's before this one: take_over() says that it has let go.
  bool awaits_predecessor() const;
  void take_over();
  std::vector<net::FileDescriptor> copy_disk_locks() const;

  // Bytes of the KV pools that have no pages yet.
  std::uint64_t untouched() const;

 private:
  struct NetworkMember {
    ServedNetwork served;
    std::unique_ptr<NetworkPredictor> predictor;
    std::unique_ptr<NetworkWeights> weights;
  };

  Engines(boost::asio::io_context& loop, const ServeOptions& options, Hooks hooks, std::unique_ptr<kernels::ThreadTeam> team);
  void add(LoadedNetwork network);

  boost::asio::io_context& loop_;
  const ServeOptions& options_;
  const Hooks hooks_;
  std::unique_ptr<kernels::ThreadTeam> team_;
  sched::ComputeStrand strand_;
  std::unique_ptr<LoadingThread> workshop_;
  std::unique_ptr<ModelSlots> slots_;
  boost::asio::thread_pool network_worker_{1};            // that makes their revisions
  std::vector<std::unique_ptr<NetworkMember>> networks_;  // in the order of the command line
};

}  // namespace braid::app
