#include "sched/compute_strand.h"

#include "sched/strand_lane.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

namespace braid::sched {
namespace {

class Executor final : public step::StepExecutor {
 public:
  std::function<void(const step::StepPlan&, step::StepResult&)> body = [](const auto&, auto&) {};
  void execute(const step::StepPlan& plan, step::StepResult& result) override { body(plan, result); }
};

TEST(ComputeStrand, ResultsComeBackInOrderOnTheLoop) {
  boost::asio::io_context loop;
  Executor executor;
  const auto loop_thread = std::this_thread::get_id();
  std::atomic<bool> on_loop_thread{false};
  executor.body = [&](const step::StepPlan& plan, step::StepResult& result) {
    if (std::this_thread::get_id() == loop_thread) on_loop_thread = true;
    result.rows.emplace_back().token = plan.tokens.front() * 2;
  };
  std::vector<TokenId> got;
  TokenId sent = 0;
  StrandLane* strand = nullptr;
  const auto refill = [&] {
    while (sent < 1000 && strand->take_turn()) {
      strand->next_plan().tokens.push_back(sent++);
      strand->post();
    }
  };
  ComputeStrand the_strand(loop);
  const auto on_return = [&] {
    EXPECT_EQ(std::this_thread::get_id(), loop_thread);
    while (const Step* step = strand->returned()) {
      EXPECT_EQ(step->result.id, step->plan.id);
      EXPECT_GT(step->result.seconds, 0.0);
      got.push_back(step->result.rows.front().token);
      strand->pop();
    }
    refill();
  };
  StrandLane lane(the_strand, executor, on_return, [] {});
  strand = &lane;
  refill();
  loop.run();  // ends because no step is out any more
  ASSERT_EQ(got.size(), 1000U);
  for (TokenId i = 0; i < 1000; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 2 * i);
  EXPECT_FALSE(on_loop_thread);
  EXPECT_TRUE(the_strand.idle());
  EXPECT_TRUE(lane.idle());
}

TEST(ComputeStrand, TwoStepsAreOutAtMost) {
  boost::asio::io_context loop;
  Executor executor;
  std::binary_semaphore gate(0);
  executor.body = [&](const auto&, auto&) { gate.acquire(); };
  ComputeStrand the_strand(loop);
  StrandLane strand(
      the_strand, executor, [] {}, [] {});
  strand.next_plan();
  strand.post();
  EXPECT_TRUE(strand.take_turn());
  strand.next_plan();
  strand.post();
  EXPECT_FALSE(strand.take_turn());
  gate.release();
  loop.run_one();
  EXPECT_FALSE(strand.take_turn()) << "a step that is back still has its place until it is popped";
  ASSERT_NE(strand.returned(), nullptr);
  strand.pop();
  EXPECT_TRUE(strand.take_turn());
  gate.release();
  loop.run();
}

TEST(ComputeStrand, NobodyHasATurnWhileItIsPausedAndWhoWaitedIsToldAfterwards) {
  boost::asio::io_context loop;
  Executor executor;
  executor.body = [](const auto&, auto&) {};
  ComputeStrand the_strand(loop);
  int turns = 0;
  StrandLane first(
      the_strand, executor, [] {}, [&] { ++turns; });
  StrandLane second(
      the_strand, executor, [] {}, [] {});
  ASSERT_TRUE(first.take_turn());
  first.next_plan();
  first.post();
  the_strand.pause();
  EXPECT_TRUE(the_strand.is_paused());
  EXPECT_FALSE(first.take_turn());
  EXPECT_FALSE(second.take_turn());
  second.pass();
  loop.run();
  ASSERT_NE(first.returned(), nullptr) << "a step that is out comes back";
  first.pop();
  EXPECT_FALSE(first.take_turn());
  EXPECT_EQ(turns, 0);
  the_strand.resume();
  EXPECT_EQ(turns, 1);
  EXPECT_TRUE(first.take_turn());
  first.pass();
  the_strand.resume();
  EXPECT_EQ(turns, 1) << "nobody waits for one";
}

// One engine with steps of several layers, and one with small ones.
struct Layered : testing::Test {
  boost::asio::io_context loop;
  Executor large, small;
  std::counting_semaphore<> begun{0}, layer{0};
  std::vector<int> order;  // of the thread
  ComputeStrand strand{loop};
  StrandLane large_lane{strand, large, [] {}, [] {}};
  std::unique_ptr<StrandLane> small_lane = std::make_unique<StrandLane>(
      strand, small, [] {}, [] {}, StrandLane::Steps::kBetweenLayers);

  Layered() {
    large.body = [&](const step::StepPlan& plan, step::StepResult& result) {
      begun.release();
      layer.acquire();
      (*plan.between_layers)();
      order.push_back(2);
      result.seconds = 5.0;
    };
    small.body = [&](const step::StepPlan& plan, step::StepResult& result) {
      EXPECT_TRUE(plan.between_layers == nullptr || !small_lane->goes_between());
      order.push_back(1);
      result.seconds = 0.25;
    };
  }

  static void post(StrandLane& lane) {
    ASSERT_TRUE(lane.take_turn());
    lane.next_plan();
    lane.post();
  }
};

TEST_F(Layered, SmallStepsRunBetweenTwoLayersOfTheOneThatRuns) {
  post(large_lane);
  post(large_lane);
  begun.acquire();
  post(*small_lane);
  EXPECT_TRUE(small_lane->goes_between());
  EXPECT_FALSE(small_lane->take_turn()) << "one is out at a time";
  layer.release(2);
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 2}));
  ASSERT_NE(small_lane->returned(), nullptr);
  EXPECT_EQ(large_lane.returned()->result.seconds, 4.75) << "what went between is no time of its own";
  large_lane.pop();
  EXPECT_EQ(large_lane.returned()->result.seconds, 5.0);
  EXPECT_TRUE(strand.idle());
}

TEST_F(Layered, SmallStepsRunBeforeTheNextStepWhereThereIsNoLayer) {
  large.body = [&](const auto&, auto&) {
    begun.release();
    layer.acquire();
    order.push_back(2);
  };
  post(large_lane);
  post(large_lane);
  begun.acquire();
  post(*small_lane);
  layer.release(2);
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 2}));
}

TEST_F(Layered, ASmallStepAloneIsOneLikeAllOthers) {
  post(*small_lane);
  EXPECT_FALSE(small_lane->goes_between());
  loop.run();
  EXPECT_EQ(order, std::vector<int>{1});
  ASSERT_NE(small_lane->returned(), nullptr);
  small_lane->pop();
  EXPECT_TRUE(small_lane->take_turn());
}

TEST_F(Layered, WhoLeavesTakesItsSmallStepAlong) {
  post(large_lane);
  begun.acquire();
  post(*small_lane);
  small_lane.reset();
  layer.release();
  loop.run();
  EXPECT_EQ(order, std::vector<int>{2});
  EXPECT_TRUE(strand.idle());
  small_lane = std::make_unique<StrandLane>(
      strand, small, [] {}, [] {}, StrandLane::Steps::kBetweenLayers);
  post(large_lane);
  begun.acquire();
  loop.restart();
  post(*small_lane);
  layer.release();
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{2, 1, 2}));
}

TEST_F(Layered, BothKindsComeBackInOrderHoweverTheyMeet) {
  constexpr TokenId kSteps = 2000;
  large.body = [](const step::StepPlan& plan, step::StepResult& result) {
    for (int i = 0; i < 3; ++i) (*plan.between_layers)();
    result.rows.emplace_back().token = plan.tokens.front();
  };
  small.body = [](const step::StepPlan& plan, step::StepResult& result) { result.rows.emplace_back().token = plan.tokens.front(); };
  struct Engine {
    std::unique_ptr<StrandLane> lane;
    TokenId sent = 0;
    std::vector<TokenId> got;

    void pump() {
      while (const Step* step = lane->returned()) {
        got.push_back(step->result.rows.front().token);
        lane->pop();
      }
      while (sent < kSteps && lane->take_turn()) {
        lane->next_plan().tokens.push_back(sent++);
        lane->post();
      }
      if (sent == kSteps) lane->pass();
    }
  };
  std::array<Engine, 3> engines;
  for (Engine& engine : engines) {
    const bool is_small = &engine != &engines.front();
    engine.lane = std::make_unique<StrandLane>(
        strand, is_small ? small : large, [&engine] { engine.pump(); }, [&engine] { engine.pump(); },
        is_small ? StrandLane::Steps::kBetweenLayers : StrandLane::Steps::kInLine);
  }
  for (Engine& engine : engines) engine.pump();
  loop.run();
  for (const Engine& engine : engines) {
    ASSERT_EQ(engine.got.size(), static_cast<std::size_t>(kSteps));
    EXPECT_TRUE(std::ranges::is_sorted(engine.got));
  }
  EXPECT_TRUE(strand.idle());
}

TEST(ComputeStrand, ExceptionBecomesAFailedResult) {
  boost::asio::io_context loop;
  Executor executor;
  executor.body = [](const auto&, step::StepResult& result) {
    result.rows.emplace_back();
    throw std::runtime_error("broken");
  };
  ComputeStrand the_strand(loop);
  StrandLane strand(
      the_strand, executor, [] {}, [] {});
  strand.next_plan();
  strand.post();
  loop.run();
  const Step* step = strand.returned();
  ASSERT_NE(step, nullptr);
  EXPECT_TRUE(step->result.rows.empty());
  ASSERT_TRUE(step->result.failure);
  EXPECT_THROW(std::rethrow_exception(step->result.failure), std::runtime_error);
}

TEST(ComputeStrand, ExecutorWithItsOwnClockIsBelieved) {
  boost::asio::io_context loop;
  Executor executor;
  executor.body = [](const auto&, step::StepResult& result) { result.seconds = 42.0; };
  ComputeStrand the_strand(loop);
  StrandLane strand(
      the_strand, executor, [] {}, [] {});
  strand.next_plan();
  strand.post();
  loop.run();
  EXPECT_EQ(strand.returned()->result.seconds, 42.0);
}

TEST(ComputeStrand, DestroyedWhileBusyDropsWhatIsOut) {
  boost::asio::io_context loop;
  Executor executor;
  std::binary_semaphore running(0);
  std::atomic<int> executed{0};
  executor.body = [&](const auto&, auto&) {
    if (executed++ == 0) running.release();
  };
  bool returned = false;
  {
    ComputeStrand the_strand(loop);
    StrandLane strand(
        the_strand, executor, [&] { returned = true; }, [] {});
    for (int i = 0; i < 2; ++i) {
      strand.next_plan();
      strand.post();
    }
    running.acquire();
  }
  loop.run();
  EXPECT_FALSE(returned);
  EXPECT_GE(executed, 1);
}

}  // namespace
}  // namespace braid::sched
