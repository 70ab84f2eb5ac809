#include "net/peers/peers.h"

#include "net/adapters/adapters.h"
#include "net/http/error_response.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/peers/change_text.h"
#include "net/service/changes.h"
#include "net/weights/weights.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <iterator>
#include <spdlog/spdlog.h>
#include <string_view>
#include <utility>

namespace braid::net::peers {
namespace {

namespace asio = boost::asio;

http::Response none() { return http::error_response({ErrorCode::kNotFound, "this server has no others beside it (--peers)", ""}); }

http::Response told(bool taken) {
  http::Response response;
  response.body = fmt::format(R"({{"object":"change","taken":{}}})", taken);
  return response;
}

// What its route does, with what it comes to.
asio::awaitable<http::Response> repeat(std::shared_ptr<Service> service, const Change& change) {
  switch (change.route) {
    case Change::Route::kUpdateWeights:
      return weights::update_as(std::move(service), change.body, change.revision);
    case Change::Route::kLoadAdapter:
      return adapters::load_as(std::move(service), change.body, change.revision);
    case Change::Route::kLoadLora:
      return adapters::load_lora_as(std::move(service), change.body, change.revision);
    case Change::Route::kUpdateAdapter:
      return adapters::update_as(std::move(service), change.body, change.revision);
    case Change::Route::kUnloadAdapter:
      break;
  }
  return adapters::unload_as(std::move(service), change.model, change.adapter);
}

// The sentence of an answer that is an error.
std::string message_of(const http::Response& response) {
  std::string body = response.body;
  const Result<Value> document = json::parse_object(body);
  const Value* error = document ? document->find("error") : nullptr;
  const Value* message = error != nullptr ? error->find("message") : nullptr;
  const auto* text = message != nullptr ? message->get_if<std::string>() : nullptr;
  return text != nullptr ? *text : fmt::format("status {}", response.status);
}

class Running {
 public:
  explicit Running(bool& flag) : flag_(flag) { flag_ = true; }
  ~Running() { flag_ = false; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  bool& flag_;
};

void append_peer(std::string& out, const PeerState& peer) {
  out += R"({"address":)";
  json::append_lossy_string(out, peer.address);
  json::append_member(out, "node", peer.node);
  json::append_member(out, "lacks", peer.fault);
  out += '}';
}

}  // namespace

http::Response state(const Service& service) {
  const Changes* changes = service.options.changes.get();
  if (changes == nullptr) return none();
  if (service.status.state == ServiceState::kLoading)
    return http::error_response({ErrorCode::kModelNotLoaded, "it loads, and takes no changes yet", ""});
  http::Response response;
  std::string& out = response.body;
  out = R"({"object":"peers")";
  json::append_member(out, "node", changes->node());
  json::append_member(out, "lacks", changes->lack(service.status));
  out += R"(,"changes":[)";
  std::string_view separator = "";
  for (const auto& change : changes->all()) {
    out += std::exchange(separator, ",");
    append_key(out, *change, fmt::format(R"(,"in_effect":{})", changes->in_effect(*change, service.status)));
  }
  out += R"(],"peers":[)";
  separator = "";
  for (const PeerState& peer : changes->peers()) {
    out += std::exchange(separator, ",");
    append_peer(out, peer);
  }
  out += "]}";
  return response;
}

asio::awaitable<http::Response> take(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  Result<Change> change = read_change(body);
  if (!change) co_return http::error_response(change.error());
  const std::shared_ptr<Changes> changes = service->options.changes;
  if (changes == nullptr) co_return none();
  const bool is_known = changes->has(*change) && changes->in_effect(*change, service->status);
  if (is_known || changes->is_undone(*change)) co_return told(false);
  if (service->status.state == ServiceState::kReady && !Changes::is_loaded(*change, service->status)) {
    changes->add(std::move(*change));  // for when it is loaded
    co_return told(true);
  }
  asio::awaitable<http::Response> repeating = repeat(service, *change);
  http::Response response = co_await std::move(repeating);
  if (response.status == 200) {
    spdlog::info("{}: brought up to date, revision {}", change->subject(), change->revision);
    changes->add(std::move(*change));
    co_return told(true);
  }
  changes->fail(*change, message_of(response));
  co_return response;
}

asio::awaitable<void> catch_up(std::shared_ptr<Service> service) {
  const std::shared_ptr<Changes> changes = service->options.changes;
  Changes::CatchingUp& state = changes->catching_up();
  if (state.is_running || state.patience.holds()) co_return;
  const Running running(state.is_running);
  const auto all = changes->all();
  for (const auto& change : all) {
    if (service->status.state != ServiceState::kReady) co_return;
    if (changes->is_undone(*change) || changes->in_effect(*change, service->status)) continue;
    asio::awaitable<http::Response> repeating = repeat(service, *change);
    const http::Response response = co_await std::move(repeating);
    if (response.status != 200) {
      changes->fail(*change, message_of(response));
      state.patience.fails();
      co_return;
    }
    spdlog::info("{}: as they were, revision {}", change->subject(), change->revision);
    changes->succeed(*change);
  }
  const bool is_whole = std::ranges::all_of(changes->all(), [&](const auto& one) { return changes->in_effect(*one, service->status); });
  if (is_whole)
    state.patience = {};
  else
    state.patience.fails();  // an administrator has changed more meanwhile, or what was done is not what it came to once
}

}  // namespace braid::net::peers
