// A scheduler over a fake model, and clients that read their streams to the end.
#pragma once

#include "braid/engine.h"
#include "sched/fake_model.h"
#include "sched/scheduler.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::sched::test {

// What a client has seen. The ticket is here so that a test can destroy it while nobody awaits it.
struct Client {
  std::string id;
  Ticket ticket;
  std::vector<TokenId> prompt;
  StopRules stop;
  Tint tint;
  std::vector<TokenId> tokens;
  std::vector<std::pair<std::size_t, std::string>> revisions;  // as they were told: of the tokens from there on
  std::vector<PromptToken> prompt_tokens;
  std::vector<float> vector;
  std::optional<Finish> finish;

  bool finished() const { return finish.has_value(); }

  // Everything that has arrived; true when that was anything.
  bool take() {
    bool any = false;
    while (ticket != nullptr && !finish) {
      std::optional<TokenEvent> event = ticket->try_next();
      if (!event) break;
      record(*event);
      any = true;
    }
    return any;
  }

  void record(TokenEvent& event) {
    if (auto* token = std::get_if<Token>(&event)) {
      if (token->revision() != nullptr) revisions.emplace_back(tokens.size(), *token->revision());
      tokens.push_back(token->id);
    } else if (auto* prompt_part = std::get_if<PromptTokens>(&event)) {
      prompt_tokens.insert(prompt_tokens.end(), prompt_part->tokens.begin(), prompt_part->tokens.end());
    } else if (auto* pooled = std::get_if<PooledVector>(&event)) {
      vector = std::move(pooled->values);
    } else {
      finish = std::get<Finish>(std::move(event));
    }
  }
};

// As the sessions of a server with adapters and images would.
inline void apply(const Tint& tint, GenerationRequest& request) {
  if (tint.adapter > 0) request.adapter = {tint.adapter, "adapter " + std::to_string(tint.adapter)};
  if (tint.image == 0) return;
  request.media = {{tint.first, tint.count, {0, tint.image}}};
  std::vector<float> vectors;
  for (std::int32_t i = 0; i < tint.count; ++i) vectors.push_back(Tint::vector_of(tint.image, i));
  request.media_vectors = {{std::make_shared<const std::vector<float>>(std::move(vectors))}};
}

inline Tint tint_of(const GenerationRequest& request) {
  Tint tint{.adapter = static_cast<std::uint16_t>(request.adapter.index)};
  if (request.media.empty()) return tint;
  const MediaSpan& span = request.media.front();
  tint.image = static_cast<std::uint16_t>(span.digest[1]);
  tint.first = static_cast<std::uint16_t>(span.first);
  tint.count = static_cast<std::uint16_t>(span.count);
  return tint;
}

inline boost::asio::awaitable<void> read_to_end(Client& client) {
  while (!client.finished()) {
    std::optional<TokenEvent> event = co_await client.ticket->next();
    if (event) client.record(*event);
  }
}

struct Rig {
  SchedulerOptions options;
  boost::asio::io_context loop;
  FakeModel model;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::unique_ptr<Client>> clients;

  static SchedulerOptions small_options() {
    SchedulerOptions options;
    options.max_batch = 8;
    options.max_batch_tokens = 256;
    options.max_waiting = 1000;
    options.context_length = 512;
    options.block_tokens = 4;
    options.blocks = 1024;
    return options;
  }

  using MakeStore = std::function<store::RecordStore*(boost::asio::io_context&)>;

  explicit Rig(
      const SchedulerOptions& scheduler_options = small_options(), FakeModelOptions model_options = {},
      const MakeStore& make_store = [](boost::asio::io_context&) { return nullptr; })
      : options(scheduler_options), model(fitting(model_options, scheduler_options)) {
    scheduler = std::make_unique<Scheduler>(loop, model, options, make_store(loop));
  }

  ~Rig() {
    model.release();
    EXPECT_TRUE(model.violations().empty()) << model.violations().front();
  }

  static FakeModelOptions fitting(FakeModelOptions model_options, const SchedulerOptions& scheduler_options) {
    model_options.block_tokens = scheduler_options.block_tokens;
    model_options.blocks = std::max(scheduler_options.blocks, scheduler_options.most_blocks);
    model_options.groups = scheduler_options.groups;
    model_options.stretch_beyond = scheduler_options.stretch_beyond;
    model_options.state_blocks = scheduler_options.state_blocks;
    return model_options;
  }

  static std::vector<TokenId> prompt_of(std::int32_t length, std::int32_t key) {
    std::vector<TokenId> prompt;
    for (std::int32_t i = 0; i < length; ++i) prompt.push_back((key * 131 + i * 7) % 997);
    return prompt;
  }

  static GenerationRequest tinted(const Tint& tint, std::vector<TokenId> prompt, std::int32_t max_tokens) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.stop.max_tokens = max_tokens;
    apply(tint, request);
    return request;
  }

  // A request that nobody reads yet.
  Client& submit(std::int32_t prompt_length, std::int32_t max_tokens, StopRules stop = {}) {
    return submit(prompt_of(prompt_length, static_cast<std::int32_t>(clients.size())), max_tokens, std::move(stop));
  }

  Client& submit(std::vector<TokenId> prompt, std::int32_t max_tokens, StopRules stop = {}, std::string cache_salt = {}) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.stop = std::move(stop);
    request.stop.max_tokens = max_tokens;
    request.cache_salt = std::move(cache_salt);
    return submit(std::move(request));
  }

  // Its id becomes one of our own.
  Client& submit(GenerationRequest request) {
    auto client = std::make_unique<Client>();
    request.id = client->id = "request-" + std::to_string(clients.size());
    client->prompt = request.prompt;
    client->stop = request.stop;
    client->tint = tint_of(request);
    auto ticket = scheduler->submit(std::move(request));
    EXPECT_TRUE(ticket.has_value());
    if (ticket) client->ticket = std::move(*ticket);
    clients.push_back(std::move(client));
    return *clients.back();
  }

  // One with a coroutine that reads it to its end.
  Client& start(std::int32_t prompt_length, std::int32_t max_tokens, StopRules stop = {}) {
    return start(prompt_of(prompt_length, static_cast<std::int32_t>(clients.size())), max_tokens, std::move(stop));
  }

  Client& start(std::vector<TokenId> prompt, std::int32_t max_tokens, StopRules stop = {}) {
    Client& client = submit(std::move(prompt), max_tokens, std::move(stop));
    boost::asio::co_spawn(loop, read_to_end(client), boost::asio::detached);
    return client;
  }

  // One from its submission to its end, while the scheduler goes on.
  Client& complete(std::vector<TokenId> prompt, std::int32_t max_tokens, std::string cache_salt = {}) {
    return complete(submit(std::move(prompt), max_tokens, {}, std::move(cache_salt)));
  }

  Client& complete(Client& client) {
    EXPECT_TRUE(run_until([&] { return client.take(), client.finished(); }));
    expect_right(client);
    return client;
  }

  // Every client takes what has come. Whether all answers have come to their end.
  bool take_all() const {
    for (const auto& client : clients) client->take();
    return std::ranges::all_of(clients, [](const auto& client) { return client->finished(); });
  }

  // Runs the loop until `reached`, at most for a time that only a hang takes.
  template <class Condition>
  bool run_until(Condition reached) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    loop.restart();
    while (!reached()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (loop.run_one_for(std::chrono::seconds(1)) == 0 && loop.stopped()) return reached();
    }
    return true;
  }

  // Everything accepted comes to its end, and then the loop has nothing left.
  void run_to_end() {
    scheduler->begin_drain();
    loop.restart();
    loop.run_for(std::chrono::seconds(120));
    EXPECT_TRUE(loop.stopped()) << "the loop still has work";
    expect_nothing_held();
  }

  void expect_nothing_held() const {
    const EngineStats stats = scheduler->stats();
    EXPECT_EQ(stats.blocks_free, stats.blocks_total) << "blocks have leaked";
    EXPECT_EQ(stats.waiting + stats.prefilling + stats.decoding, 0U);
  }

  void expect_right(const Client& client) const {
    ASSERT_TRUE(client.finished());
    EXPECT_EQ(client.tokens, model.expected(client.prompt, client.stop, client.tint));
    EXPECT_EQ(client.finish->usage.completion_tokens, static_cast<std::int32_t>(client.tokens.size()));
    EXPECT_EQ(client.finish->usage.prompt_tokens, static_cast<std::int32_t>(client.prompt.size()));
  }

  SequencePhase phase(const Client& client) const { return scheduler->find(client.id).value_or(SequencePhase::kDone); }
};

}  // namespace braid::sched::test
