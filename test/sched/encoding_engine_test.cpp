// The engine of a model that reads whole texts: order, batches, cancellation in every phase, refusals, and its turns beside others.
#include "sched/encoding_engine.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::sched {
namespace {

namespace asio = boost::asio;

// A text's vector is its first token and the number of texts that shared its pass. A pass takes as many parts as it has tokens.
class CountingEncoder final : public step::Encoder {
 public:
  std::unique_ptr<step::EncoderPass> begin(std::vector<step::EncoderText> texts) override {
    ++passes;
    return std::make_unique<Pass>(*this, std::move(texts));
  }

  int passes = 0;  // strand, or after it
  std::atomic<int> parts{0};
  bool throws = false;

 private:
  class Pass final : public step::EncoderPass {
   public:
    Pass(CountingEncoder& encoder, std::vector<step::EncoderText> texts) : encoder_(encoder), texts_(std::move(texts)) {
      for (const step::EncoderText& text : texts_) left_ += text.tokens.size();
    }
    bool advance() override {
      if (encoder_.throws) throw std::runtime_error("no arithmetic today");
      ++encoder_.parts;
      return --left_ > 0;
    }
    std::vector<float> take(std::size_t text) override {
      return {static_cast<float>(texts_[text].tokens.front()), static_cast<float>(texts_.size())};
    }

   private:
    CountingEncoder& encoder_;
    const std::vector<step::EncoderText> texts_;
    std::size_t left_ = 0;
  };
};

GenerationRequest text_of(TokenId first, std::size_t count, std::int32_t priority = 0) {
  GenerationRequest request;
  request.id = "text-" + std::to_string(first);
  request.prompt.assign(count, first);
  request.pooling = Pooling::kMean;
  request.priority = priority;
  return request;
}

struct EncodingRig {
  explicit EncodingRig(EncodingOptions options = {.context_length = 100}) : engine(loop, strand, encoder, std::move(options)) {}

  Ticket submit(GenerationRequest request) { return engine.submit(std::move(request)).value(); }

  // The events of a ticket, once all of them are there.
  std::vector<TokenEvent> events_of(Ticket& ticket) {
    std::vector<TokenEvent> events;
    asio::co_spawn(
        loop,
        [](TokenSource& source, std::vector<TokenEvent>& out) -> asio::awaitable<void> {
          while (out.empty() || !std::holds_alternative<Finish>(out.back())) {
            std::optional<TokenEvent> event = co_await source.next();
            if (event) out.push_back(std::move(*event));
          }
        }(*ticket, events),
        asio::detached);
    loop.restart();
    loop.run();
    return events;
  }
  std::vector<float> vector_of(Ticket& ticket) { return std::get<PooledVector>(events_of(ticket).front()).values; }

  asio::io_context loop;
  ComputeStrand strand{loop};
  CountingEncoder encoder;
  EncodingEngine engine;
};

TEST(EncodingEngine, GivesEachTextItsVectorAndItsUsage) {
  EncodingRig rig;
  Ticket ticket = rig.submit(text_of(7, 3));
  const std::vector<TokenEvent> events = rig.events_of(ticket);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<PooledVector>(events[0]).values, (std::vector<float>{7, 1}));
  EXPECT_EQ(std::get<Finish>(events[1]).usage.prompt_tokens, 3);
  EXPECT_EQ(rig.engine.stats().finished, 1U);
  EXPECT_EQ(rig.engine.stats().prompt_tokens, 3U);
}

// An update may end them, in a pass or not, and nobody else.
TEST(EncodingEngine, EndsThoseWhoUseAnAdapter) {
  EncodingRig rig;
  const auto adapter = std::make_shared<const int>(1);
  const auto adapted = [&](TokenId first) {
    GenerationRequest request = text_of(first, 4);
    request.adapter.lease = adapter;
    return request;
  };
  Ticket running = rig.submit(adapted(1));  // begins at once
  Ticket waiting = rig.submit(adapted(2));
  Ticket other = rig.submit(text_of(3, 4));
  rig.engine.end_users([&](const AdapterUse& use) { return use.lease == adapter; }, {ErrorCode::kCancelled, "replaced", {}});
  for (Ticket* ticket : {&running, &waiting}) {
    const std::vector<TokenEvent> events = rig.events_of(*ticket);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<Finish>(events.front()).reason, FinishReason::kCancelled);
    EXPECT_EQ(std::get<Finish>(events.front()).error->message, "replaced");
  }
  EXPECT_EQ(rig.vector_of(other).front(), 3.0F);
  EXPECT_EQ(rig.engine.stats().cancelled, 2U);
}

TEST(EncodingEngine, WhatWaitsSharesAPassUpToItsTokens) {
  EncodingRig rig({.context_length = 100, .most_tokens = 10});
  std::vector<Ticket> tickets;
  tickets.push_back(rig.submit(text_of(1, 2)));  // begins at once
  for (TokenId first = 2; first <= 5; ++first) tickets.push_back(rig.submit(text_of(first, 4)));
  std::vector<std::vector<float>> vectors;
  for (Ticket& ticket : tickets) vectors.push_back(rig.vector_of(ticket));
  EXPECT_EQ(vectors, (std::vector<std::vector<float>>{{1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 2}}));
  EXPECT_EQ(rig.encoder.passes, 3);
}

TEST(EncodingEngine, BetterPrioritiesGoFirstAndALongTextHasAPassForItself) {
  EncodingRig rig({.context_length = 100, .most_tokens = 10});
  Ticket running = rig.submit(text_of(1, 1));
  Ticket worse = rig.submit(text_of(2, 6, 5));
  Ticket better = rig.submit(text_of(3, 6, -5));
  Ticket longest = rig.submit(text_of(4, 50, 50));
  ASSERT_EQ(rig.engine.sequences(10).size(), 4U);
  EXPECT_EQ(rig.engine.sequences(10)[1].id, "text-3");
  EXPECT_EQ(rig.vector_of(better), (std::vector<float>{3, 1}));
  EXPECT_EQ(rig.vector_of(worse), (std::vector<float>{2, 1}));
  EXPECT_EQ(rig.vector_of(longest), (std::vector<float>{4, 1}));
}

TEST(EncodingEngine, WhoLeavesTheQueueIsNotComputed) {
  EncodingRig rig;
  Ticket running = rig.submit(text_of(1, 1));
  Ticket waiting = rig.submit(text_of(2, 50));
  waiting.reset();
  EXPECT_EQ(rig.engine.stats().waiting, 0U);
  EXPECT_EQ(rig.vector_of(running), (std::vector<float>{1, 1}));
  EXPECT_EQ(rig.encoder.parts.load(), 1);
  EXPECT_EQ(rig.engine.stats().cancelled, 1U);
}

TEST(EncodingEngine, APassThatNobodyWantsIsGivenUp) {
  EncodingRig rig({.context_length = 1'000'000, .most_of_step = std::chrono::microseconds(0)});
  Ticket running = rig.submit(text_of(1, 1'000'000));
  running.reset();
  Ticket next = rig.submit(text_of(2, 1));
  EXPECT_EQ(rig.vector_of(next), (std::vector<float>{2, 1}));
  EXPECT_LT(rig.encoder.parts.load(), 1'000'000);
}

TEST(EncodingEngine, CancelsByIdWhereverTheTextIs) {
  EncodingRig rig;
  Ticket running = rig.submit(text_of(1, 5));
  Ticket waiting = rig.submit(text_of(2, 5));
  EXPECT_TRUE(rig.engine.cancel("text-1"));
  EXPECT_TRUE(rig.engine.cancel("text-2"));
  EXPECT_FALSE(rig.engine.cancel("text-2"));
  for (Ticket* ticket : {&running, &waiting}) {
    const std::vector<TokenEvent> events = rig.events_of(*ticket);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<Finish>(events.front()).reason, FinishReason::kCancelled);
  }
}

TEST(EncodingEngine, RefusesWhatItCannotDo) {
  EncodingRig rig({.context_length = 10, .vocabulary = 100, .max_waiting = 1});
  GenerationRequest answer = text_of(1, 3);
  answer.pooling = Pooling::kNone;
  EXPECT_EQ(rig.engine.submit(answer).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rig.engine.submit(text_of(1, 11)).error().code, ErrorCode::kContextLength);
  GenerationRequest unknown = text_of(1, 3);
  for (const TokenId token : {100, -1}) {  // a tokenizer may know more than its model
    unknown.prompt.back() = token;
    EXPECT_EQ(rig.engine.submit(unknown).error().code, ErrorCode::kInvalidArgument);
  }
  Ticket running = rig.submit(text_of(1, 1));
  Ticket waiting = rig.submit(text_of(2, 1));
  const Error full = rig.engine.submit(text_of(3, 1)).error();
  EXPECT_EQ(full.code, ErrorCode::kOverloaded);
  EXPECT_GE(full.retry_after.count(), 1);
  EXPECT_EQ(rig.engine.check_queue(1, 0).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(rig.engine.check_queue(2, 0).error().code, ErrorCode::kInvalidArgument);
  rig.engine.begin_drain();
  EXPECT_EQ(rig.engine.submit(text_of(3, 1)).error().code, ErrorCode::kDraining);
}

TEST(EncodingEngine, APassThatThrowsEndsItsTextsAndNoOther) {
  EncodingRig rig;
  rig.encoder.throws = true;
  Ticket failing = rig.submit(text_of(1, 1));
  const std::vector<TokenEvent> events = rig.events_of(failing);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<Finish>(events.front()).reason, FinishReason::kError);
  rig.encoder.throws = false;
  Ticket next = rig.submit(text_of(2, 1));
  EXPECT_EQ(rig.vector_of(next), (std::vector<float>{2, 1}));
}

TEST(EncodingEngine, TicketsOutliveIt) {
  asio::io_context loop;
  CountingEncoder encoder;
  ComputeStrand strand(loop);
  auto engine = std::make_unique<EncodingEngine>(loop, strand, encoder, EncodingOptions{.context_length = 10});
  Ticket running = engine->submit(text_of(1, 5)).value();
  Ticket waiting = engine->submit(text_of(2, 5)).value();
  engine.reset();
  EXPECT_TRUE(std::holds_alternative<Finish>(running->try_next().value()));
  EXPECT_TRUE(std::holds_alternative<Finish>(waiting->try_next().value()));
}

// Two engines whose parts take no time at all have their turns one after the other: neither's long text keeps the other's short one waiting
// until it is done.
TEST(EncodingEngine, ALongPassIsLeftForOthersOfTheStrand) {
  asio::io_context loop;
  CountingEncoder slow;
  CountingEncoder quick;
  ComputeStrand strand(loop);
  const EncodingOptions options{.context_length = 1'000'000, .most_of_step = std::chrono::microseconds(0)};
  EncodingEngine one(loop, strand, slow, options);
  EncodingEngine other(loop, strand, quick, options);
  Ticket longest = one.submit(text_of(1, 200'000)).value();
  Ticket shortest = other.submit(text_of(2, 1)).value();
  int parts_before = -1;
  asio::co_spawn(
      loop,
      [](TokenSource& source, CountingEncoder& encoder, int& parts) -> asio::awaitable<void> {
        const std::optional<TokenEvent> event = co_await source.next();
        if (event) parts = encoder.parts.load();
      }(*shortest, slow, parts_before),
      asio::detached);
  loop.run();
  EXPECT_GE(parts_before, 0);
  EXPECT_LT(parts_before, 100);
}

}  // namespace
}  // namespace braid::sched
