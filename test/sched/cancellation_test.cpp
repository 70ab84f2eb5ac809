// A ticket can be destroyed in every phase: no step planned after that contains its sequence, and its blocks come back.
#include "sched/rig.h"

#include <numeric>

namespace braid::sched::test {
namespace {

std::int32_t free_blocks(const Rig& rig) { return static_cast<std::int32_t>(rig.scheduler->stats().blocks_free); }

TEST(Cancellation, WhileQueued) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  Rig rig(options);
  Client& running = rig.start(4, 30);
  Client& queued = rig.submit(4, 30);
  Client& last = rig.start(4, 30);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(running) == SequencePhase::kDecode; }));
  ASSERT_EQ(rig.phase(queued), SequencePhase::kWaiting);
  queued.ticket.reset();
  EXPECT_EQ(rig.scheduler->find(queued.id), std::nullopt);
  EXPECT_EQ(rig.scheduler->stats().waiting, 1U);
  rig.run_to_end();
  rig.expect_right(running);
  rig.expect_right(last);
  EXPECT_EQ(rig.scheduler->stats().cancelled, 1U);
  EXPECT_EQ(rig.scheduler->stats().prompt_tokens, 8U) << "the queued one was never computed";
}

// It has no slot to give back; who came next would get that of the one that runs.
TEST(Cancellation, WhileQueuedForWantOfBlocksWithSlotsToSpare) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 24;
  Rig rig(options);
  Client& running = rig.start(40, 30);
  Client& queued = rig.submit(80, 4);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(running) == SequencePhase::kDecode; }));
  ASSERT_EQ(rig.phase(queued), SequencePhase::kWaiting);
  queued.ticket.reset();
  Client& next = rig.start(5, 8);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(next) == SequencePhase::kDecode; }));
  EXPECT_EQ(rig.phase(running), SequencePhase::kDecode) << "both are in the batch at once";
  rig.run_to_end();
  rig.expect_right(running);
  rig.expect_right(next);
}

TEST(Cancellation, BeforeTheSchedulerHasSeenIt) {
  Rig rig;
  rig.submit(4, 4).ticket.reset();
  rig.run_to_end();
  EXPECT_TRUE(rig.model.steps().empty());
}

TEST(Cancellation, WhilePrefilling) {
  Rig rig;
  rig.model.hold();
  Client& client = rig.submit(300, 5);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(client) == SequencePhase::kPrefill; }));
  client.ticket.reset();
  EXPECT_LT(free_blocks(rig), rig.options.blocks) << "posted steps still name its blocks";
  rig.model.release();
  rig.run_to_end();
  EXPECT_LE(rig.model.steps().size(), 2U) << "two posted steps at most still contain it";
}

TEST(Cancellation, WhileDecoding) {
  Rig rig;
  Client& victim = rig.submit(5, 400);
  Client& other = rig.start(5, 60);
  ASSERT_TRUE(rig.run_until([&] { return victim.take(), victim.tokens.size() >= 10; }));
  rig.model.hold();
  const std::size_t before = rig.model.steps().size();
  victim.ticket.reset();
  rig.model.release();
  rig.run_to_end();
  rig.expect_right(other);
  const auto steps = rig.model.steps();
  for (std::size_t i = before + 3; i < steps.size(); ++i) EXPECT_LE(steps[i].rows.size(), 1U);
}

TEST(Cancellation, BlocksComeBackWithTheLastPostedStep) {
  Rig rig;
  rig.model.hold();
  Client& client = rig.submit(9, 100);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(client) == SequencePhase::kDecode; }));
  client.ticket.reset();
  const std::int32_t held = rig.options.blocks - free_blocks(rig);
  EXPECT_EQ(held, 3);
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  EXPECT_EQ(free_blocks(rig), rig.options.blocks - held) << "the second step is still out";
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 2; }));
  EXPECT_EQ(free_blocks(rig), rig.options.blocks);
  rig.run_to_end();
}

TEST(Cancellation, AfterItsEndInFlight) {
  FakeModelOptions model;
  model.vocab = 1;
  model.eos = 0;  // the first token ends it; the step after that is posted already
  Rig rig(Rig::small_options(), model);
  Client& client = rig.submit(5, 50);
  ASSERT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
  client.ticket.reset();
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().cancelled, 0U);
  EXPECT_EQ(rig.scheduler->stats().finished, 1U);
}

TEST(Cancellation, WhileStalled) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 6;
  Rig rig(options);
  Client& client = rig.submit(5, 100);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(client) == SequencePhase::kStalled; }));
  EXPECT_LT(free_blocks(rig), rig.options.blocks) << "a stalled sequence keeps its blocks";
  client.ticket.reset();
  EXPECT_EQ(free_blocks(rig), rig.options.blocks);
  rig.run_to_end();
}

// In every phase the slot and the blocks are free again within two steps.
TEST(Cancellation, IsMeasuredInEveryPhase) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 4;
  options.stream_capacity = 6;
  Rig rig(options);
  Client& stalled = rig.submit(5, 100);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(stalled) == SequencePhase::kStalled; }));
  Client& decoding = rig.start(5, 300);
  ASSERT_TRUE(rig.run_until([&] { return decoding.tokens.size() >= 3; }));
  rig.model.hold();
  Client& prefilling = rig.submit(250, 100);
  rig.model.allow(1);
  ASSERT_TRUE(
      rig.run_until([&] { return rig.phase(prefilling) == SequencePhase::kPrefill || rig.phase(prefilling) == SequencePhase::kDecode; }));
  Client& queued = rig.submit(5, 5);
  stalled.ticket.reset();
  queued.ticket.reset();
  prefilling.ticket.reset();
  rig.scheduler->begin_drain();
  EXPECT_TRUE(rig.scheduler->cancel(decoding.id));
  rig.model.release();
  rig.run_to_end();
  const EngineStats stats = rig.scheduler->stats();
  EXPECT_EQ(stats.cancelled, 4U);
  EXPECT_GE(stats.cancel_to_free_steps[0], 2U) << "who is in no step is free at once";
  EXPECT_EQ(stats.cancel_to_free_steps[0] + stats.cancel_to_free_steps[1] + stats.cancel_to_free_steps[2], 4U);
  EXPECT_EQ(std::accumulate(stats.cancel_to_free.counts.begin(), stats.cancel_to_free.counts.end(), std::uint64_t{0}), 4U);
}

TEST(Cancellation, ByTheTicketActsInItsOwnCall) {
  Rig rig;
  Client& client = rig.submit(5, 400);
  bool woken = false;
  boost::asio::co_spawn(
      rig.loop,
      [](Client& reader, bool& done) -> boost::asio::awaitable<void> {
        while (const std::optional<TokenEvent> event = co_await reader.ticket->next()) EXPECT_FALSE(std::holds_alternative<Finish>(*event));
        done = true;
      }(client, woken),
      boost::asio::detached);
  rig.loop.poll();  // it waits
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(client) == SequencePhase::kDecode; }));
  client.ticket->cancel();
  EXPECT_EQ(rig.scheduler->find(client.id), std::nullopt);
  EXPECT_EQ(rig.scheduler->stats().cancelled, 1U);
  EXPECT_EQ(rig.scheduler->stats().decoding, 0U);
  client.ticket->cancel();
  ASSERT_TRUE(rig.run_until([&] { return woken; }));
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().cancelled, 1U);
}

TEST(Cancellation, ByIdEndsTheStream) {
  Rig rig;
  Client& client = rig.start(5, 400);
  ASSERT_TRUE(rig.run_until([&] { return client.tokens.size() >= 5; }));
  EXPECT_TRUE(rig.scheduler->cancel(client.id));
  EXPECT_FALSE(rig.scheduler->cancel(client.id));
  EXPECT_FALSE(rig.scheduler->cancel("nobody"));
  rig.run_to_end();
  ASSERT_TRUE(client.finished());
  EXPECT_EQ(client.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(client.finish->usage.completion_tokens, static_cast<std::int32_t>(client.tokens.size()));
}

TEST(Cancellation, StalledStreamResumesWhenRead) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 8;
  Rig rig(options);
  Client& slow = rig.submit(5, 100);
  Client& quick = rig.start(5, 100);
  ASSERT_TRUE(rig.run_until([&] { return quick.finished(); })) << "a slow reader holds nobody up";
  rig.expect_right(quick);
  EXPECT_EQ(rig.phase(slow), SequencePhase::kStalled);
  const std::size_t idle = rig.model.steps().size();
  rig.loop.restart();
  rig.loop.poll();
  EXPECT_EQ(rig.model.steps().size(), idle) << "a stalled sequence is in no step";
  ASSERT_TRUE(rig.run_until([&] { return slow.take(), slow.finished(); }));
  rig.run_to_end();
  rig.expect_right(slow);
  EXPECT_EQ(rig.scheduler->stats().prompt_tokens, 11U) << "coming back computes one token anew, not the prompt";
}

TEST(Cancellation, SmallestStreamStillDeliversEverything) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 1;
  Rig rig(options);
  for (int i = 0; i < 12; ++i) rig.start(3, 20);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

}  // namespace
}  // namespace braid::sched::test
