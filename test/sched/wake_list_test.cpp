#include "sched/wake_list.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <vector>

namespace braid::sched {
namespace {

namespace asio = boost::asio;

// Waits so many times and says each time who it is.
asio::awaitable<void> tell(Signal& signal, int name, std::vector<int>& told, int times) {
  for (int i = 0; i < times; ++i) {
    co_await signal.wait();
    told.push_back(name);
  }
}

struct WakeListTest : testing::Test {
  asio::io_context loop;
  std::shared_ptr<WakeList> wakes = std::make_shared<WakeList>(loop);
  std::vector<int> told;
  std::deque<std::optional<Signal>> signals;

  void wait(int count, int times = 1) {
    for (int i = 0; i < count; ++i) {
      Signal& signal = signals.emplace_back(std::in_place).value();
      asio::co_spawn(loop, tell(signal, static_cast<int>(signals.size()) - 1, told, times), asio::detached);
    }
    poll();
  }

  void poll() {
    loop.restart();
    loop.poll();
  }
};

TEST_F(WakeListTest, ResumesInOrderFromTheLoop) {
  wait(3);
  for (const int name : {2, 0, 1}) wakes->add(*signals[static_cast<std::size_t>(name)]);
  EXPECT_TRUE(told.empty());
  poll();
  EXPECT_EQ(told, (std::vector{2, 0, 1}));
}

TEST_F(WakeListTest, AddingTwiceOrWithoutAWaiterResumesNobodyElse) {
  wait(1, 2);
  wakes->add(*signals[0]);
  wakes->add(*signals[0]);
  Signal nobody;
  wakes->add(nobody);
  poll();
  EXPECT_EQ(told, std::vector{0});
  wakes->add(*signals[0]);
  poll();
  EXPECT_EQ(told, (std::vector{0, 0})) << "it can be added anew";
}

TEST_F(WakeListTest, WhatTheLoopHasToDoDoesNotWaitForThousands) {
  wait(1000);
  for (auto& signal : signals) wakes->add(*signal);
  std::size_t before = 0;
  asio::post(loop, [&] { asio::post(loop, [&] { before = told.size(); }); });
  poll();
  EXPECT_EQ(told.size(), 1000U);
  EXPECT_LT(before, 100U);
}

TEST_F(WakeListTest, ANotificationTakesThePlaceOfTheTurn) {
  wait(2);
  wakes->add(*signals[0]);
  wakes->add(*signals[1]);
  signals[0]->notify_now();
  poll();
  EXPECT_EQ(told, (std::vector{0, 1}));
}

TEST_F(WakeListTest, WhoIsDestroyedBeforeHisTurnIsUnwound) {
  wait(3);
  for (auto& signal : signals) wakes->add(*signal);
  signals[1].reset();
  poll();
  EXPECT_EQ(told, (std::vector{0, 2}));
}

TEST_F(WakeListTest, ItsOwnerMayGoFirst) {
  wait(2);
  for (auto& signal : signals) wakes->add(*signal);
  wakes.reset();
  poll();
  EXPECT_EQ(told, (std::vector{0, 1}));
}

// Its own hint, and a count of how often it was asked for.
class Hint final : public WakeHint {
 public:
  void prefetch() const noexcept override { ++asked; }
  mutable int asked = 0;
};

asio::awaitable<void> wait_once(Signal& signal, const Hint& hint) { co_await signal.wait(&hint); }

TEST_F(WakeListTest, WhatTheNextOnesNeedIsFetchedAhead) {
  std::deque<Hint> hints(40);
  for (Hint& hint : hints) {
    Signal& signal = signals.emplace_back(std::in_place).value();
    asio::co_spawn(loop, wait_once(signal, hint), asio::detached);
  }
  poll();
  for (auto& signal : signals) wakes->add(*signal);
  poll();
  EXPECT_EQ(hints[0].asked, 0) << "nothing runs before the first";
  for (std::size_t i = 1; i < hints.size(); ++i) EXPECT_EQ(hints[i].asked, 1) << i;
}

}  // namespace
}  // namespace braid::sched
