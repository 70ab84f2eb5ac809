// Too few blocks for all: the youngest give way, everybody gets the answer he would have got alone.
#include "sched/rig.h"

namespace braid::sched::test {
namespace {

SchedulerOptions tight(std::int32_t blocks) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = blocks;
  return options;
}

TEST(Pressure, PreemptedAnswersEqualSoloAnswers) {
  Rig rig(tight(40));
  for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 40 + i);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
  EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  EXPECT_EQ(rig.scheduler->stats().finished, 20U);
}

TEST(Pressure, EverySequenceNeedsTheWholePool) {
  Rig rig(tight(10));
  for (int i = 0; i < 6; ++i) rig.start(8, 33);  // 40 positions written: all ten blocks
  rig.run_to_end();
  for (const auto& client : rig.clients) {
    EXPECT_EQ(client->tokens.size(), 33U);
    rig.expect_right(*client);
  }
}

TEST(Pressure, OldestIsNeverPreempted) {
  Rig rig(tight(30));
  Client& oldest = rig.start(10, 100);
  for (int i = 0; i < 7; ++i) rig.start(10, 100);
  ASSERT_TRUE(rig.run_until([&] { return oldest.finished(); }));
  for (std::size_t i = 1; i < rig.clients.size(); ++i) EXPECT_FALSE(rig.clients[i]->finished());
  // Alone it takes a step for the prompt and one for each further token; beside the others it skips none of them but those in
  // which blocks are on their way back.
  EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  EXPECT_LE(rig.model.steps().size(), 150U);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Pressure, PreemptionKeepsTheOrderOfSubmission) {
  Rig rig(tight(24));
  for (int i = 0; i < 8; ++i) rig.start(10, 60);
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(rig.run_until([&] { return rig.clients[i]->finished(); }));
    for (std::size_t later = i + 2; later < 8; ++later) EXPECT_FALSE(rig.clients[later]->finished());
  }
  rig.run_to_end();
}

TEST(Pressure, StalledReaderGivesUpItsBlocksToOthers) {
  SchedulerOptions options = tight(20);
  options.stream_capacity = 16;
  Rig rig(options);
  Client& slow = rig.submit(20, 50);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(slow) == SequencePhase::kStalled; }));
  Client& large = rig.start(60, 20);
  ASSERT_TRUE(rig.run_until([&] { return large.finished(); })) << "needs blocks that only the stalled one has";
  rig.expect_right(large);
  ASSERT_TRUE(rig.run_until([&] { return slow.take(), slow.finished(); }));
  rig.expect_right(slow);
  rig.run_to_end();
}

TEST(Pressure, FullStreamAtABlockBoundaryPreemptsNobody) {
  SchedulerOptions options = tight(9);
  options.stream_capacity = 8;
  Rig rig(options);
  Client& silent = rig.submit(9, 20);  // full after 8 tokens, with 16 positions written: its four blocks have no room either
  Client& reads = rig.start(9, 12);    // 20 positions: the other five
  ASSERT_TRUE(rig.run_until([&] { return reads.finished(); }));
  rig.expect_right(reads);
  EXPECT_EQ(rig.scheduler->stats().preemptions, 0U);
  ASSERT_TRUE(rig.run_until([&] { return silent.take(), silent.finished(); }));
  rig.run_to_end();
  rig.expect_right(silent);
}

TEST(Pressure, OnlyStalledReadersHoldBlocksWhileOthersDecode) {
  SchedulerOptions options = tight(16);
  options.stream_capacity = 4;
  Rig rig(options);
  for (int i = 0; i < 3; ++i) rig.submit(12, 50);
  ASSERT_TRUE(rig.run_until(
      [&] { return rig.phase(*rig.clients[0]) == SequencePhase::kStalled && rig.phase(*rig.clients[2]) == SequencePhase::kStalled; }));
  Client& grows = rig.start(4, 60);
  ASSERT_TRUE(rig.run_until([&] { return grows.finished(); }));
  rig.expect_right(grows);
  ASSERT_TRUE(rig.run_until([&] {
    bool all = true;
    for (int i = 0; i < 3; ++i)
      all = (rig.clients[static_cast<std::size_t>(i)]->take(), rig.clients[static_cast<std::size_t>(i)]->finished()) && all;
    return all;
  }));
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Pressure, PreemptedSequenceWithAFullStreamWaitsForItsReader) {
  for (std::int32_t capacity = 1; capacity <= 12; ++capacity) {
    SchedulerOptions options = tight(14);
    options.stream_capacity = capacity;
    Rig rig(options);
    for (int i = 0; i < 4; ++i) rig.start(10, 40);
    Client& silent = rig.submit(6, 40);
    ASSERT_TRUE(rig.run_until([&] {
      return rig.clients[0]->finished() && rig.clients[1]->finished() && rig.clients[2]->finished() && rig.clients[3]->finished();
    }));
    ASSERT_TRUE(rig.run_until([&] { return silent.take(), silent.finished(); }));
    rig.expect_right(silent);
    rig.run_to_end();
  }
}

// The memory that a pool gives back may be another model's at once.
TEST(Pressure, APoolShrinksUnderItsSequencesAndGrowsAgain) {
  for (const bool cached : {true, false}) {
    SchedulerOptions options = tight(200);
    options.prefix_cache = cached;
    Rig rig(options);
    int given_back = 0;
    for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 60 + i);
    ASSERT_TRUE(rig.run_until([&] { return rig.clients[3]->tokens.size() > 20; }));
    EXPECT_EQ(rig.scheduler->resize(30, [&given_back] { ++given_back; }), 30);
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().blocks_total == 30; }));
    EXPECT_GT(rig.scheduler->stats().preemptions + rig.scheduler->stats().finished, 0U);
    ASSERT_TRUE(rig.run_until([&] { return given_back > 0; }));
    ASSERT_TRUE(rig.run_until([&] { return rig.clients[8]->finished(); }));
    EXPECT_EQ(rig.scheduler->resize(200, {}), 200);
    EXPECT_EQ(rig.scheduler->stats().blocks_total, 200U);
    for (int i = 0; i < 5; ++i) rig.start(9, 30);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
  }
}

// As one that was made beside another model's.
TEST(Pressure, APoolGrowsBeyondItsFirstSize) {
  SchedulerOptions options = tight(40);
  options.most_blocks = 200;
  Rig rig(options);
  EXPECT_EQ(rig.scheduler->stats().blocks_total, 40U);
  for (int i = 0; i < 12; ++i) rig.start(5 + i % 11, 60 + i);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().preemptions > 0; }));
  EXPECT_EQ(rig.scheduler->resize(150, {}), 150);
  EXPECT_EQ(rig.scheduler->stats().blocks_total, 150U);
  EXPECT_EQ(rig.scheduler->resize(1000, {}), 200);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 8; })) << "as many as there are slots";
  EXPECT_EQ(rig.scheduler->resize(40, {}), 40);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().blocks_total == 40; }));
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

TEST(Pressure, APoolKeepsWhatItsLongestSequenceNeeds) {
  Rig rig(tight(100));
  rig.start(20, 180);  // fifty blocks
  Client& other = rig.start(4, 8);
  EXPECT_EQ(rig.scheduler->resize(10, {}), 50);
  EXPECT_EQ(rig.scheduler->resize(1000, {}), 100) << "as many as at first";
  EXPECT_EQ(rig.scheduler->resize(10, {}), 50);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->finished() && other.finished(); }));
  EXPECT_EQ(rig.scheduler->resize(10, {}), 10);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().blocks_total == 10; }));
  EXPECT_FALSE(rig.scheduler->submit(Rig::tinted({}, Rig::prompt_of(60, 1), 4))) << "the pool holds forty tokens";
  rig.start(20, 10);
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

// As a model's that is unloaded while the server goes on.
TEST(Lifecycle, AClosedSchedulerIsDestroyedWhileTheLoopGoesOn) {
  Rig rig;
  for (int i = 0; i < 4; ++i) rig.start(6, 20);
  rig.submit(6, 20).ticket.reset();  // cancelled, and perhaps in a step
  bool is_closed = false;
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->finished() && rig.clients[3]->finished(); }));
  const auto close = [&]() -> boost::asio::awaitable<void> {
    rig.scheduler->begin_drain();
    co_await rig.scheduler->drained(std::chrono::steady_clock::time_point::max());
    co_await rig.scheduler->closed();
    rig.scheduler.reset();
    is_closed = true;
  };
  boost::asio::co_spawn(rig.loop, close(), boost::asio::detached);
  ASSERT_TRUE(rig.run_until([&] { return is_closed; }));
  rig.loop.restart();
  rig.loop.run();  // whatever was left in the queue
  for (std::size_t i = 0; i < 4; ++i) rig.expect_right(*rig.clients[i]);
}

}  // namespace
}  // namespace braid::sched::test
