#include "sched/token_stream.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace braid::sched {
namespace {

namespace asio = boost::asio;

Token token(TokenId id) {
  Token result;
  result.id = id;
  return result;
}

TokenId id_of(const std::optional<TokenEvent>& event) { return std::get<Token>(event.value()).id; }

bool is_finish(const std::optional<TokenEvent>& event) { return event && std::holds_alternative<Finish>(*event); }

// Waits for one event, or for the end of the wait.
asio::awaitable<void> read_one(TokenStream& stream, std::optional<TokenEvent>& event, bool& done) {
  event = stream.try_next();
  if (!event) {
    co_await stream.arrived().wait();
    event = stream.try_next();
  }
  done = true;
}

struct Reader {
  std::optional<TokenEvent> event;
  bool done = false;

  Reader(asio::io_context& loop, TokenStream& stream) {
    asio::co_spawn(loop, read_one(stream, event, done), asio::detached);
    loop.restart();
    loop.poll();
  }
};

TEST(TokenStream, GivesTokensInOrderAndFinishLast) {
  TokenStream stream(100);
  for (TokenId id = 0; id < 100; ++id) stream.push(token(id));
  stream.finish({});
  EXPECT_EQ(stream.size(), 100) << "the finish takes no token's place";
  for (TokenId id = 0; id < 100; ++id) EXPECT_EQ(id_of(stream.try_next()), id);
  EXPECT_TRUE(is_finish(stream.try_next()));
  EXPECT_EQ(stream.try_next(), std::nullopt);
}

// Each is there once, however far the ring has turned, and gone with its token or with the stream.
TEST(TokenStream, DetailsGoWithTheirTokens) {
  const auto revision = std::make_shared<const std::string>("r");
  {
    TokenStream stream(64);
    TokenId written = 0;
    TokenId read = 0;
    for (std::int32_t backlog = 1; backlog <= 64; ++backlog) {
      for (; stream.size() < backlog; ++written) stream.push({written, -1.0F, {{{written, -0.5F}}, -0.25F, revision}});
      EXPECT_EQ(revision.use_count(), 1 + backlog);
      for (std::int32_t i = 0; i < (backlog + 1) / 2; ++i, ++read) {
        const std::optional<TokenEvent> event = stream.try_next();
        const Token& token = std::get<Token>(event.value());
        ASSERT_EQ(token.top().size(), 1U);
        EXPECT_EQ(token.top().front().id, read);
        EXPECT_EQ(token.drawn_logprob(), -0.25F);
        EXPECT_EQ(token.revision(), revision.get());
      }
    }
    EXPECT_EQ(revision.use_count(), 1 + stream.size());
    stream.close();
  }
  EXPECT_EQ(revision.use_count(), 1);
}

TEST(TokenStream, KeepsOrderWhileTheRingTurnsAndGrows) {
  TokenStream stream(64);
  TokenId written = 0;
  TokenId read = 0;
  for (int round = 1; round <= 60; ++round) {
    while (stream.size() < round) stream.push(token(written++));
    for (int i = 0; i < round / 2; ++i) ASSERT_EQ(id_of(stream.try_next()), read++);
  }
}

TEST(TokenStream, NextWaitsForDelivery) {
  asio::io_context loop;
  const auto wakes = std::make_shared<WakeList>(loop);
  TokenStream stream(4);
  Reader reader(loop, stream);
  EXPECT_FALSE(reader.done);
  stream.push(token(7));
  stream.deliver(*wakes);
  EXPECT_FALSE(reader.done) << "the consumer runs from the loop, not inside deliver()";
  loop.restart();
  loop.poll();
  ASSERT_TRUE(reader.done);
  EXPECT_EQ(id_of(reader.event), 7);
}

TEST(TokenStream, NextGivesWhatIsThereWithoutWaiting) {
  asio::io_context loop;
  const auto wakes = std::make_shared<WakeList>(loop);
  TokenStream stream(4);
  stream.push(token(1));
  stream.push(token(2));
  stream.deliver(*wakes);
  EXPECT_EQ(id_of(Reader(loop, stream).event), 1);
  EXPECT_EQ(id_of(Reader(loop, stream).event), 2);
  Reader third(loop, stream);
  EXPECT_FALSE(third.done) << "a delivery from before does not end a later wait";
  stream.finish({});
  stream.deliver(*wakes);
  loop.restart();
  loop.poll();
  EXPECT_TRUE(is_finish(third.event));
}

TEST(TokenStream, ANotificationEndsThePendingWaitAndLosesNothing) {
  asio::io_context loop;
  TokenStream stream(4);
  Reader pending(loop, stream);
  stream.arrived().notify();
  loop.restart();
  loop.poll();
  EXPECT_TRUE(pending.done);
  EXPECT_EQ(pending.event, std::nullopt);
  stream.push(token(1));
  EXPECT_EQ(id_of(Reader(loop, stream).event), 1);
}

TEST(TokenStream, ClosingDropsWhatIsDeliveredAndNotYetTaken) {
  asio::io_context loop;
  const auto wakes = std::make_shared<WakeList>(loop);
  TokenStream stream(4);
  Reader pending(loop, stream);
  stream.push(token(1));
  stream.finish({});
  stream.deliver(*wakes);
  stream.close();
  loop.restart();
  loop.poll();
  EXPECT_TRUE(pending.done);
  EXPECT_EQ(pending.event, std::nullopt);
}

TEST(TokenStream, CancelledWaitLosesNothing) {
  asio::io_context loop;
  TokenStream stream(4);
  asio::cancellation_signal cancel;
  bool ended = false;
  std::optional<TokenEvent> event;
  bool done = false;
  asio::co_spawn(loop, read_one(stream, event, done),
                 asio::bind_cancellation_slot(cancel.slot(), [&ended](const std::exception_ptr&) { ended = true; }));
  loop.poll();
  EXPECT_FALSE(ended);
  cancel.emit(asio::cancellation_type::terminal);
  loop.restart();
  loop.poll();
  EXPECT_TRUE(ended);
  EXPECT_EQ(event, std::nullopt);
  stream.push(token(5));
  EXPECT_EQ(id_of(Reader(loop, stream).event), 5);
}

TEST(TokenStream, DestroyedUnderAWaiterUnwindsIt) {
  asio::io_context loop;
  const auto alive = std::make_shared<int>(0);
  auto stream = std::make_unique<TokenStream>(4);
  const auto waits = [](TokenStream& source, std::shared_ptr<int> held) -> asio::awaitable<void> {
    co_await source.arrived().wait();
    ++*held;
  };
  asio::co_spawn(loop, waits(*stream, alive), asio::detached);
  loop.poll();
  EXPECT_EQ(alive.use_count(), 2);
  stream.reset();
  loop.restart();
  loop.run();
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(*alive, 0);
}

}  // namespace
}  // namespace braid::sched
