// What all sessions of one server share.
#pragma once

#include "braid/predictor.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/access/cors.h"
#include "net/access/key_ring.h"
#include "net/http/connection_set.h"
#include "net/http/send_batch.h"
#include "net/metrics/counters.h"
#include "net/metrics/system_figures.h"
#include "net/service/server_options.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <spdlog/spdlog.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::net {

// The models, or why there is none that could answer. The view is valid until the loop goes on.
Result<const ModelDirectory*> served_models(const ServiceStatus& status);

// kNotFound with the names that there are. Any thread.
Result<const ServedModel*> find_model(const ModelDirectory& models, std::string_view name);

// As both, and an adapter's name is that of its base: for who has a name, and no models yet.
Result<const ServedModel*> served_model(const ServiceStatus& status, std::string_view name = {});

struct Wish;
struct RegistryTask;

// An answer that is being generated.
struct RunningAnswer {
  const access::Account* client;  // whose it is; lives as long as the answer runs
  Engine* engine;                 // of its model
  std::size_t sequences;          // choices of all its prompts
  const Wish* wish;               // what was asked for, but for the prompt; lives as long
};

// A prediction that waits or runs.
struct RunningPrediction {
  const access::Account* client;  // whose it is; lives as long
  PendingPrediction* pending;     // likewise
};

// Whose request it is, and the id that its client gave it, or the server did (X-Request-Id).
struct Asker {
  std::shared_ptr<const access::Account> client;
  std::string request_id;
};

// Which connections are not kept alive any more.
enum class Closing {
  kNot,
  kAnswered,  // those that get an answer from now on
  kIdle,      // those that wait for another request, too
  kWaiting,   // those that wait for the rest of a request, or for their first one, too
};

// Loop only. Held by the server and by every running session.
struct Service {
  Service(boost::asio::io_context& event_loop, ServerOptions server_options, const ServiceStatus& service_status)
      : loop(event_loop), options(std::move(server_options)),
        status(service_status), log{options.log.logger != nullptr ? options.log.logger : spdlog::default_logger(), options.log.format,
                                    options.log.access, options.log.proxies, options.log.traces},
        keys(options.api_keys, options.anonymous, std::chrono::steady_clock::now()), cors(options.cors_origins),
        connections(std::make_shared<http::ConnectionSet>(loop, options.tick)),
        sends(std::make_shared<http::SendBatch>(loop, http::SendRing::make())) {}

  // The prefix and 24 hexadecimal digits; not a secret.
  std::string new_id(std::string_view prefix);
  std::uint64_t new_seed() { return random(); }

  bool is_closing() const { return closing != Closing::kNot; }

  boost::asio::io_context& loop;
  const ServerOptions options;
  const ServiceStatus& status;
  const RequestLogOptions log;
  access::KeyRing keys;
  const access::Cors cors;
  const std::shared_ptr<http::ConnectionSet> connections;
  const std::shared_ptr<http::SendBatch> sends;  // of all connections
  Counters counters;
  SystemSample system;
  std::string piece;  // of a streamed answer, while it is being written; one for all, so that it stays in the cache
  Closing closing = Closing::kNot;
  std::mt19937_64 random{std::random_device{}()};
  std::unordered_map<std::string, RunningAnswer> answers;               // by id
  std::unordered_multimap<std::string, RunningPrediction> predictions;  // by Asker::request_id, which several may have
  std::uint32_t codec_jobs = 0;                                         // given to the codec worker and not ended
  boost::asio::thread_pool codec_worker{1};                             // parses, renders and tokenises long requests
  std::vector<std::weak_ptr<RegistryTask>> registry_tasks;              // that have not ended, and some that have
  std::optional<boost::asio::thread_pool> registry_workers;             // registry_jobs.h; the last member: its threads end first
};

}  // namespace braid::net
