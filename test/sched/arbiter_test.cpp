#include "sched/arbiter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace braid::sched {
namespace {

constexpr std::size_t kStepsOut = 2;  // in all, as on the strand

// An engine in virtual time: it has work in [from, until), and at most `depth` steps out.
struct FakeEngine {
  std::function<double(std::mt19937&)> step_seconds;
  std::size_t depth = 2;
  double from = 0.0;
  double until = std::numeric_limits<double>::max();

  Arbiter::Member member = 0;
  std::size_t out = 0;
  double had = 0.0;
  std::int64_t steps = 0;
  double last_end = 0.0;
  double longest_wait = 0.0;  // between the ends of two of its steps

  bool has_work(double now) const { return now >= from && now < until; }
};

std::function<double(std::mt19937&)> always(double seconds) {
  return [seconds](std::mt19937&) { return seconds; };
}

std::function<double(std::mt19937&)> between(double least, double most) {
  return [=](std::mt19937& random) { return std::uniform_real_distribution(least, most)(random); };
}

struct Out {
  FakeEngine* engine;
  double seconds;
};

// Engines on one strand, until `end`.
void run(std::vector<FakeEngine>& engines, double end, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  Arbiter arbiter;
  for (FakeEngine& engine : engines) engine.member = arbiter.join();
  std::deque<Out> strand;
  const auto wanting = [&](double now) {
    for (FakeEngine& engine : engines) {
      if (engine.has_work(now) && engine.out < engine.depth) {
        arbiter.want(engine.member);
      } else if (!engine.has_work(now) || engine.out == 0) {
        arbiter.withdraw(engine.member);
      }
    }
  };
  for (double now = 0.0; now < end;) {
    for (wanting(now); strand.size() < kStepsOut; wanting(now)) {
      const auto next = arbiter.next();
      if (!next) break;
      FakeEngine& engine = *std::ranges::find(engines, *next, &FakeEngine::member);
      arbiter.begin(engine.member);
      ++engine.out;
      strand.push_back({&engine, engine.step_seconds(random)});
    }
    if (strand.empty()) {
      now += 1e-3;
      continue;
    }
    const auto [engine, seconds] = strand.front();
    strand.pop_front();
    now += seconds;
    engine->had += seconds;
    ++engine->steps;
    engine->longest_wait = std::max(engine->longest_wait, now - std::max(engine->last_end, engine->from));
    engine->last_end = now;
    --engine->out;
    arbiter.end(engine->member, seconds);
  }
}

TEST(Arbiter, EqualLoadHasEqualStrandTime) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<FakeEngine> engines(2 + seed % 4);
    double longest = 0.0;
    for (FakeEngine& engine : engines) {
      const double typical = std::exp(std::uniform_real_distribution(-7.0, -3.0)(random));  // 1 to 50 ms
      engine.step_seconds = between(0.3 * typical, 1.7 * typical);
      longest = std::max(longest, 1.7 * typical);
    }
    const double seconds = 400.0 * longest * static_cast<double>(engines.size());
    run(engines, seconds, seed);
    const double fair = seconds / static_cast<double>(engines.size());
    for (const FakeEngine& engine : engines) {
      EXPECT_NEAR(engine.had, fair, 0.05 * fair) << "of " << engines.size() << " engines, seed " << seed;
      // All others, and a step of each more than its share.
      EXPECT_LE(engine.longest_wait, 3.0 * longest * static_cast<double>(engines.size())) << "seed " << seed;
    }
  }
}

TEST(Arbiter, EqualEnginesTakeTurns) {
  std::vector<FakeEngine> engines(3);
  for (FakeEngine& engine : engines) engine.step_seconds = always(0.01);
  run(engines, 3.0);
  for (const FakeEngine& engine : engines) {
    EXPECT_NEAR(static_cast<double>(engine.steps), 100.0, 1.0);
    EXPECT_LE(engine.longest_wait, 0.0501);
  }
}

TEST(Arbiter, AnIdleOneCostsNothingAndGetsNoCredit) {
  std::vector<FakeEngine> engines(3);
  for (FakeEngine& engine : engines) engine.step_seconds = always(0.01);
  engines[1].from = 10.0;
  engines[2].from = 1e9;
  run(engines, 10.0);
  EXPECT_NEAR(engines[0].had, 10.0, 0.02);
  EXPECT_EQ(engines[2].steps, 0);

  std::vector<FakeEngine> again(2);
  for (FakeEngine& engine : again) engine.step_seconds = always(0.01);
  again[1].from = 10.0;
  run(again, 20.0);
  EXPECT_NEAR(again[0].had, 15.0, 0.05) << "who comes late may not make up for the time before";
  EXPECT_NEAR(again[1].had, 5.0, 0.05);
  EXPECT_LE(again[0].longest_wait, 0.041);
}

TEST(Arbiter, ShortBreaksAreNoLoss) {
  // Between two of its steps an engine with one step out has nothing to post: that is no rest from which it would begin anew.
  std::vector<FakeEngine> engines(2);
  engines[0] = {.step_seconds = always(0.011), .depth = 1};
  engines[1] = {.step_seconds = always(0.004), .depth = 2};
  run(engines, 100.0);
  EXPECT_NEAR(engines[0].had, 50.0, 0.5);
}

TEST(Arbiter, LeavingMakesRoom) {
  Arbiter arbiter;
  const Arbiter::Member first = arbiter.join();
  const Arbiter::Member second = arbiter.join();
  arbiter.want(first);
  arbiter.begin(first);
  arbiter.want(second);
  EXPECT_EQ(arbiter.active(), 2);
  arbiter.leave(first);
  EXPECT_EQ(arbiter.active(), 1);
  EXPECT_EQ(arbiter.next(), second);
  EXPECT_EQ(arbiter.join(), first);
  EXPECT_EQ(arbiter.active(), 1);
}

TEST(Arbiter, SmallStepsGoBetweenLayersWhileNobodyElseHasHadLess) {
  Arbiter arbiter;
  const Arbiter::Member large = arbiter.join();
  const Arbiter::Member small = arbiter.join(true);
  const auto small_steps = [&] {
    int steps = 0;
    for (; steps < 100 && arbiter.next_between() == small; ++steps) {
      arbiter.begin(small);
      arbiter.end(small, 4.0);
      arbiter.want(small);
    }
    return steps;
  };
  arbiter.want(large);
  EXPECT_EQ(arbiter.next_between(), std::nullopt) << "it does not go there";
  arbiter.begin(large);
  arbiter.end(large, 10.0);
  arbiter.want(large);
  arbiter.begin(large);
  EXPECT_EQ(arbiter.next_between(), std::nullopt) << "nobody wants to";
  arbiter.want(small);
  EXPECT_EQ(small_steps(), 3);  // to 22, the other one being at 20 when its step is over
  arbiter.want(large);
  EXPECT_EQ(arbiter.next(), large);
  arbiter.end(large, 10.0);
  arbiter.begin(large);
  EXPECT_EQ(small_steps(), 3);  // from 22 to 34, the other one being at 30
}

}  // namespace
}  // namespace braid::sched
