// What is known of one model of a server, and where it is between its file and the strand.
#pragma once

#include "app/serving/catalogue.h"
#include "app/serving/served_engine.h"
#include "braid/model_host.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {

// Loop only. It is not destroyed while it has an engine or is in a queue.
struct ModelSlot {
  using Clock = std::chrono::steady_clock;

  // Of a request for the model while it is being loaded.
  struct Waiting {
    std::weak_ptr<ModelWait> wait;
    Clock::time_point until;
  };

  ModelSlot(boost::asio::io_context& loop, FoundModel model) : found(std::move(model)), expiry(loop), retry(loop) {}

  const std::string& id() const { return found.options.id; }
  // Of the command line's models it is as long as there is memory for them, unless a request says something else.
  KeepAlive kept(KeepAlive usual) const { return keep_alive.value_or(found.is_named ? kKeepForever : usual); }

  FoundModel found;
  ModelState state = ModelState::kUnloaded;
  bool is_gone = false;                          // its files are: forgotten when it is unloaded
  bool is_unwanted = false;                      // to be unloaded when nobody uses it
  bool sleeps_then = false;                      // and to stay so
  std::optional<EngineMemory> leaving;           // in kUnloading: what has not come free yet
  std::unique_ptr<ServedEngine> engine;          // from kLoaded until its last step in kUnloading
  std::shared_ptr<const KeptAdapters> adapters;  // of the last engine that has ended; null: it never had any
  std::shared_ptr<const KeptWeights> weights;    // newer ones, of one that broke; null: it had none, or nobody wants it any more
  std::weak_ptr<const ServedModel> in_use;       // by whoever has one
  std::optional<KeepAlive> keep_alive;           // asked for; the server's otherwise
  Clock::time_point last_used;
  boost::asio::steady_timer expiry;
  std::optional<std::chrono::system_clock::time_point> expires;  // while nobody uses it
  std::vector<Waiting> loads;                                    // waits for it
  std::vector<std::weak_ptr<ModelWait>> ends;                    // waits for its unloading
  ModelProgress progress;
  std::string failure;                   // of the last load
  std::shared_ptr<ModelWait> reload;     // of one that broke, until it is loaded again, or nobody wants it any more
  int reload_failures = 0;               // since it broke
  boost::asio::steady_timer retry;       // after one of them
  std::chrono::seconds load_seconds{1};  // that the last one took
};

}  // namespace braid::app
