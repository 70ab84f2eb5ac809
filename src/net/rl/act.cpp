#include "net/rl/act.h"

#include "net/generation/dialect.h"
#include "net/generation/submission.h"
#include "net/predict/tensor_json.h"
#include "net/predict/waiting.h"
#include "net/rl/act_answer.h"
#include "net/rl/act_request.h"
#include "net/service/asked_model.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <spdlog/spdlog.h>
#include <utility>
#include <vector>

namespace braid::net::rl {
namespace {

namespace asio = boost::asio;

using Clock = Sessions::Clock;

// JavaScript and others read numbers of JSON as float64.
std::uint64_t new_seed(Service& service) { return service.new_seed() >> 11U; }

// What the session has, where the request does not give it.
void go_on(ActRequest& request, ActionDraw& draw, const Sessions::Episode& episode) {
  if (!request.step) draw.step = episode.step;
  if (!request.seeds && episode.step > 0) draw.seeds = {episode.seed};
  const std::vector<PolicyState>& states = request.network->predictor->policy()->states;
  if (request.gives_states || episode.states.size() != states.size()) return;
  for (std::size_t i = 0; i < states.size(); ++i) request.inputs[states[i].input] = episode.states[i];
}

Result<void> keep(Sessions::Turn& turn, const ActRequest& request, const ActionDraw& draw, const std::vector<Tensor>& drawn) {
  if (request.ends_session) {
    turn.end();
    return {};
  }
  const auto states = static_cast<std::ptrdiff_t>(request.network->predictor->policy()->states.size());
  return turn.keep({std::vector<Tensor>(drawn.end() - states, drawn.end()), draw.seeds.front(), draw.step + 1}, request.time_to_live,
                   Clock::now());
}

struct Document {
  std::string text;
  bool is_file = false;
};

asio::awaitable<Result<Document>> take_step(Service& service, http::Connection& connection, const Deadlines& deadlines, Sessions& sessions,
                                            const Asker& asker, ActRequest& request) {
  const ServedNetwork& network = *request.network;
  std::optional<Sessions::Turn> turn;
  ActionDraw draw{.deterministic = request.deterministic, .seeds = {}, .step = request.step.value_or(0)};
  draw.seeds = request.seeds ? *request.seeds : std::vector<std::uint64_t>{new_seed(service)};
  if (!request.session.empty()) {
    Result<Sessions::Turn> begun = sessions.begin(asker.client->name(), request.session, network.id, Clock::now());
    if (!begun) co_return begun.error();
    turn.emplace(std::move(*begun));
    if (!request.resets_session) go_on(request, draw, turn->episode());
  }
  std::string revision = network.revision;  // of what is asked now
  const Result<std::int32_t> priority = priority_by_rules(asker.client->rules(), request.priority, true);
  if (!priority) co_return priority.error();
  auto pending = network.predictor->act(std::move(request.inputs), draw, *priority);
  if (!pending) co_return pending.error();
  const Result<std::vector<Tensor>> drawn = co_await predict::outputs_of(service, connection, deadlines, asker, **pending);
  if (!drawn) co_return drawn.error();
  if (std::optional<std::string> newer = (*pending)->newer_revision()) revision = std::move(*newer);
  // A session keeps its states, and does not tell them.
  const std::size_t untold = turn ? network.predictor->policy()->states.size() : 0;
  const Result<std::size_t> values = predict::answered_numbers(std::span(*drawn).first(drawn->size() - untold), "observations");
  if (!values) co_return values.error();
  if (turn) {
    const Result<void> kept = keep(*turn, request, draw, *drawn);
    if (!kept) co_return kept.error();
  }
  service.counters.policy_steps += static_cast<std::uint64_t>(drawn->at(1).floats.size());
  const ActAnswer answer{network.id, revision, draw, *drawn, !turn.has_value()};
  Document document{{}, request.as_file};
  std::function<void()> writing = [&] { document.text = request.as_file ? act_file(request, answer) : act_document(request, answer); };
  constexpr std::size_t kBytesOfValue = 12;
  const Result<void> written =
      co_await predict::run_text(service, connection, deadlines, Progress::kStarted, *values * kBytesOfValue, std::move(writing));
  if (!written) co_return written.error();
  co_return std::move(document);
}

// Nullopt: the body names no network.
asio::awaitable<Result<std::optional<Document>>> answer_of(Service& service, http::Connection& connection, Sessions& sessions,
                                                           const Asker& asker, std::string& body) {
  if (service.status.state == ServiceState::kDraining) co_return Error{ErrorCode::kDraining, "the server is shutting down", ""};
  if (service.status.state == ServiceState::kLoading) co_return Error{ErrorCode::kModelNotLoaded, "the models are still being loaded", ""};
  const Deadlines deadlines = predict::deadlines_of(service);
  const ModelDirectory models = service.status.models;
  const bool may_generate = check_service(service.status).has_value();
  Result<std::optional<ActRequest>> request = Error{};
  std::function<void()> reading = [&] { request = read_act(models, may_generate, body); };
  const Result<void> read = co_await predict::run_text(service, connection, deadlines, Progress::kQueued, body.size(), std::move(reading));
  if (!read) co_return read.error();
  if (!request) co_return request.error();
  if (!*request) co_return std::optional<Document>();
  Result<Document> document = co_await take_step(service, connection, deadlines, sessions, asker, **request);
  if (!document) co_return document.error();
  co_return std::optional(std::move(*document));
}

}  // namespace

asio::awaitable<std::optional<http::Response>> act(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                                   Sessions& sessions, Asker asker, std::string& body) {
  Result<std::optional<Document>> document = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    document = co_await answer_of(*service, *connection, sessions, asker, body);
  } catch (const std::exception& bug) {
    spdlog::error("a policy's step: {}", bug.what());
  }
  if (!document) co_return kOpenAiVoice.refuse(document.error());
  if (!*document) co_return std::nullopt;
  http::Response response;
  if ((*document)->is_file) response.content_type = "application/octet-stream";
  response.body = std::move((*document)->text);
  co_return response;
}

}  // namespace braid::net::rl
