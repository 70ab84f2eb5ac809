// The engines of all models that are served: a scheduler for each, or a queue for a small network; one strand for all.
#pragma once

#include "app/options.h"
#include "app/serving/model_adapters.h"
#include "app/serving/model_loader.h"
#include "app/serving/network_predictor.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/http/file_descriptor.h"
#include "sched/compute_strand.h"
#include "sched/encoding_engine.h"
#include "sched/scheduler.h"

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

// Loop only. Destroyed after the server whose sessions hold tickets, and before the io_context.
class Engines {
 public:
  // What of the options contradicts itself is an error. `on_busy` is called when a step is posted while none was out. `options` outlive it.
  static Result<std::unique_ptr<Engines>> create(boost::asio::io_context& loop, LoadedModels models, const ServeOptions& options,
                                                 std::function<void()> on_busy);

  // Valid while this lives.
  ModelDirectory directory() const;
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
  struct Member {
    LoadedModel model;
    ServedModel served;
    std::unique_ptr<ModelAdapters> adapters;
    std::unique_ptr<sched::Scheduler> scheduler;
  };

  struct EncoderMember {
    LoadedEncoder model;
    ServedModel served;
    std::unique_ptr<sched::EncodingEngine> engine;
  };

  struct NetworkMember {
    ServedNetwork served;
    std::unique_ptr<NetworkPredictor> predictor;
  };

  Engines(boost::asio::io_context& loop, const ServeOptions& options, std::function<void()> on_busy);
  Result<void> add(LoadedModel model);
  void add(LoadedEncoder model);
  void add(LoadedNetwork network);

  boost::asio::io_context& loop_;
  const ServeOptions& options_;
  std::unique_ptr<kernels::ThreadTeam> team_;
  sched::ComputeStrand strand_;
  std::vector<std::unique_ptr<Member>> members_;  // in the order of the command line, as the next ones
  std::vector<std::unique_ptr<EncoderMember>> encoders_;
  std::vector<std::unique_ptr<NetworkMember>> networks_;
  boost::asio::thread_pool adapter_worker_{1};  // reads and prepares adapters of the members, and so goes before them
};

}  // namespace braid::app
