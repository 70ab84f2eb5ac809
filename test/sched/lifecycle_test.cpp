// Start, serve, stop: the loop returns by itself, and no stream ends without a word.
#include "sched/rig.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <thread>

namespace braid::sched::test {
namespace {

using std::chrono::steady_clock;

TEST(Lifecycle, IdleSchedulerStopsAtOnce) {
  Rig rig;
  rig.run_to_end();
  EXPECT_TRUE(rig.model.steps().empty());
}

TEST(Lifecycle, FiveFullCycles) {
  for (int cycle = 0; cycle < 5; ++cycle) {
    Rig rig;
    for (int i = 0; i < 20; ++i) rig.start(5 + i, 10 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
  }
}

TEST(Lifecycle, DrainingTakesNothingNew) {
  Rig rig;
  rig.start(5, 5);
  rig.scheduler->begin_drain();
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  EXPECT_EQ(rig.scheduler->submit(std::move(request)).error().code, ErrorCode::kDraining);
  rig.run_to_end();
  rig.expect_right(*rig.clients[0]);
}

boost::asio::awaitable<void> drain(Scheduler& scheduler, steady_clock::time_point deadline, std::optional<bool>& result) {
  result = co_await scheduler.drained(deadline);
}

TEST(Lifecycle, DrainedWaitsForTheLastSequence) {
  Rig rig;
  for (int i = 0; i < 20; ++i) rig.start(5, 50);
  rig.scheduler->begin_drain();
  std::optional<bool> result;
  boost::asio::co_spawn(rig.loop, drain(*rig.scheduler, steady_clock::now() + std::chrono::hours(1), result), boost::asio::detached);
  rig.run_to_end();
  EXPECT_EQ(result, true);
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

// Work of several requests, one after the other, that was accepted before.
TEST(Lifecycle, WhatHasAReservationIsTakenWhileItDrains) {
  Rig rig;
  std::shared_ptr<const void> reservation = rig.scheduler->reserve();
  Client& first = rig.start(5, 5);
  rig.scheduler->begin_drain();
  std::optional<bool> result;
  boost::asio::co_spawn(rig.loop, drain(*rig.scheduler, steady_clock::now() + std::chrono::hours(1), result), boost::asio::detached);
  ASSERT_TRUE(rig.run_until([&] { return first.finished(); }));
  rig.loop.poll();
  EXPECT_FALSE(result.has_value()) << "it waits for the rest of the work";
  GenerationRequest rest = Rig::tinted({}, Rig::prompt_of(9, 3), 4);
  EXPECT_EQ(rig.scheduler->submit(rest).error().code, ErrorCode::kDraining);
  rest.reservation = std::move(reservation);
  Client& second = rig.submit(std::move(rest));
  boost::asio::co_spawn(rig.loop, read_to_end(second), boost::asio::detached);
  rig.run_to_end();
  EXPECT_EQ(result, true);
  rig.expect_right(second);
}

TEST(Lifecycle, WhatHasAReservationIsNotRefusedByAFullQueue) {
  SchedulerOptions options = Rig::small_options();
  options.max_waiting = 2;
  Rig rig(options);
  GenerationRequest reserved = Rig::tinted({}, Rig::prompt_of(9, 3), 4);
  reserved.reservation = rig.scheduler->reserve();
  for (int i = 0; i < 2; ++i) rig.start(5, 5);
  EXPECT_EQ(rig.scheduler->submit(Rig::tinted({}, Rig::prompt_of(9, 3), 4)).error().code, ErrorCode::kOverloaded);
  Client& client = rig.submit(std::move(reserved));
  boost::asio::co_spawn(rig.loop, read_to_end(client), boost::asio::detached);
  rig.run_to_end();
  for (const auto& each : rig.clients) rig.expect_right(*each);
}

TEST(Lifecycle, AnAbortDoesNotWaitForReservationsWhichMayOutliveAll) {
  GenerationRequest request = Rig::tinted({}, Rig::prompt_of(9, 3), 4);
  {
    Rig rig;
    request.reservation = rig.scheduler->reserve();
    EXPECT_EQ(rig.scheduler->reserve(), request.reservation);
    rig.scheduler->abort_remaining({ErrorCode::kDraining, "stop", {}});
    EXPECT_EQ(rig.scheduler->submit(request).error().code, ErrorCode::kDraining);
    rig.run_to_end();
  }
  request.reservation.reset();
}

TEST(Lifecycle, DeadlineThenEveryRemainingStreamGetsItsFinish) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 8;
  Rig rig(options);
  for (int i = 0; i < 12; ++i) rig.start(5, 400);  // running and, beyond the batch, waiting
  Client& stalled = rig.submit(5, 400);
  stalled.take();
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() > 3; }));
  rig.model.hold();
  rig.scheduler->begin_drain();
  std::optional<bool> result;
  boost::asio::co_spawn(rig.loop, drain(*rig.scheduler, steady_clock::now(), result), boost::asio::detached);
  ASSERT_TRUE(rig.run_until([&] { return result.has_value(); }));
  EXPECT_EQ(result, false);

  rig.scheduler->abort_remaining({ErrorCode::kDraining, "the server is shutting down", {}});
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->finished(); })) << "while its step is still running";
  rig.model.release();
  rig.run_to_end();
  stalled.take();
  for (const auto& client : rig.clients) {
    ASSERT_TRUE(client->finished());
    EXPECT_EQ(client->finish->reason, FinishReason::kCancelled);
    ASSERT_TRUE(client->finish->error.has_value());
    EXPECT_EQ(client->finish->error->code, ErrorCode::kDraining);
  }
}

TEST(Lifecycle, StopWhileBusyInEveryPhase) {
  for (int steps = 0; steps < 12; ++steps) {
    SchedulerOptions options = Rig::small_options();
    options.blocks = 40;
    Rig rig(options);
    for (int i = 0; i < 20; ++i) rig.start(10, 40);
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps >= static_cast<std::uint64_t>(steps * 5); }));
    rig.scheduler->abort_remaining({ErrorCode::kDraining, "stop", {}});
    rig.scheduler->abort_remaining({ErrorCode::kDraining, "a second stop changes nothing", {}});
    rig.run_to_end();
    for (const auto& client : rig.clients) ASSERT_TRUE(client->finished());
  }
}

TEST(Lifecycle, DestroyedWhileBusy) {
  Rig rig;
  for (int i = 0; i < 12; ++i) rig.start(5, 400);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() > 3; }));
  rig.scheduler.reset();
  for (const auto& client : rig.clients) client->take();
  for (const auto& client : rig.clients) EXPECT_TRUE(client->finished()) << "tickets outlive the scheduler";
}

// The loop is the only thread that touches the scheduler; others hand their wishes over.
TEST(Lifecycle, FourThreadsSubmitAHundredEach) {
  Rig rig;
  auto work = boost::asio::make_work_guard(rig.loop);
  std::atomic<int> submitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        boost::asio::post(rig.loop, [&, t, i] {
          rig.start(3 + (t * 7 + i) % 13, 1 + (t + i) % 9);
          ++submitted;
        });
      }
    });
  }
  const bool all = rig.run_until([&] { return submitted == 400; });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(all);
  work.reset();
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
  EXPECT_EQ(rig.scheduler->stats().finished, 400U);
}

}  // namespace
}  // namespace braid::sched::test
