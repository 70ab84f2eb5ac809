// A loaded model with the engine that answers for it.
#pragma once

#include "app/encoder_folder.h"
#include "app/loaded_model.h"
#include "app/options.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/http/file_descriptor.h"
#include "sched/compute_strand.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::app {

struct KeptAdapters;
struct KeptWeights;

// Bytes that a model has taken, or been promised.
struct EngineMemory {
  const void* shelf = nullptr;  // whose weights they are: of those that are equal, one counts
  std::uint64_t weights = 0;
  std::uint64_t own = 0;  // what it computes with, and buffers
  std::uint64_t kv = 0;   // its pool
};

// Loop only. Destroyed with its holds gone; the strand and its team outlive it.
class ServedEngine {
 public:
  virtual ~ServedEngine() = default;

  const ServedModel& served() const { return served_; }

  virtual std::vector<std::string> description() const = 0;  // lines for whoever started the server
  virtual std::string state() const = 0;                     // "3 sequences run and 1 wait, 10 of 20 KV blocks are free"
  virtual EngineMemory memory() const = 0;
  virtual std::uint64_t untouched() const { return 0; }  // bytes of the pool that have no pages yet

  // The first steps, with a prompt of so many tokens.
  virtual boost::asio::awaitable<Result<void>> warm_up(std::int32_t prompt_tokens) = 0;

  // No new work; true when all that was accepted has ended, false when the deadline came first.
  virtual void begin_drain() = 0;
  virtual boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point until) = 0;
  virtual void abort_remaining(const Error& reason) = 0;

  // Its pool is to have at most so many bytes, or as few more as its sequences need; true: it gives some back, and `on_given_back` is called
  // then. It has no more than what it was made for.
  virtual bool resize_pool(std::uint64_t /*bytes*/, std::function<void()> /*on_given_back*/) { return false; }

  // Its newer weights, for the engine in its place when what computes it is lost; null: it has those that it was loaded with. They are
  // restored before anybody uses it, and before its adapters; an error: it is not to be used.
  virtual std::shared_ptr<const KeptWeights> keep_weights() const { return nullptr; }
  virtual boost::asio::awaitable<Result<void>> restore_weights(std::shared_ptr<const KeptWeights> /*kept*/) { co_return Result<void>(); }

  // Its adapters, for the next engine of the model; null: it never had any.
  virtual std::shared_ptr<const KeptAdapters> keep_adapters() const { return nullptr; }
  virtual boost::asio::awaitable<void> restore_adapters(std::shared_ptr<const KeptAdapters> /*kept*/) { co_return; }
  // Those at `paths` are used by all its requests from now on: its maker wants them.
  virtual boost::asio::awaitable<Result<void>> use_adapters(std::vector<std::string> paths) {
    co_return paths.empty() ? Result<void>() : invalid_argument("it takes no adapters");
  }

  // Once nobody uses it: waits for its last step. Nothing of it is used by the loop or the strand any more; what it has taken is given back
  // when what is returned is destroyed, on any thread.
  virtual boost::asio::awaitable<std::shared_ptr<void>> end() = 0;

  // `tell` is called when what computes it is lost, and with it its pool: it is to be loaded again.
  virtual void on_broken(std::function<void(const std::string& why)> /*tell*/) {}

  // Of its disk tier, if it has one.
  virtual bool awaits_predecessor() const { return false; }
  virtual void take_over() {}
  virtual net::FileDescriptor copy_disk_lock() const { return net::FileDescriptor(-1); }

 protected:
  ServedModel served_;
};

// What of the options contradicts itself is an error. They outlive it.
Result<std::unique_ptr<ServedEngine>> make_engine(boost::asio::io_context& loop, sched::ComputeStrand& strand, LoadedModel model,
                                                  const ServeOptions& options);
std::unique_ptr<ServedEngine> make_engine(boost::asio::io_context& loop, sched::ComputeStrand& strand, LoadedEncoder model,
                                          const ServeOptions& options);

}  // namespace braid::app
