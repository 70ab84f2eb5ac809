// Who goes first, who gives way, and that nobody waits for ever.
#include "sched/rig.h"

#include <algorithm>
#include <string>

namespace braid::sched::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class Priority : public testing::Test {
 protected:
  static Client& submit(Rig& rig, std::int32_t priority, std::int32_t prompt_length = 4, std::int32_t max_tokens = 4) {
    GenerationRequest request;
    request.prompt = Rig::prompt_of(prompt_length, static_cast<std::int32_t>(rig.clients.size()));
    request.stop.max_tokens = max_tokens;
    request.priority = priority;
    return rig.submit(std::move(request));
  }

  // Indices of the clients in the order in which they end.
  static std::vector<std::size_t> order_of_ends(Rig& rig) {
    std::vector<std::size_t> order;
    EXPECT_TRUE(rig.run_until([&] {
      for (std::size_t i = 0; i < rig.clients.size(); ++i) {
        rig.clients[i]->take();
        if (rig.clients[i]->finished() && std::ranges::count(order, i) == 0) order.push_back(i);
      }
      return order.size() == rig.clients.size();
    }));
    return order;
  }
};

TEST_F(Priority, BetterOnesGoFirstAndAClassKeepsItsOrder) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  Rig rig(options);
  for (const std::int32_t priority : {5, 0, -5, 5, 0, -5}) submit(rig, priority);
  EXPECT_EQ(order_of_ends(rig), (std::vector<std::size_t>{2, 5, 1, 4, 0, 3}));
  rig.run_to_end();
}

TEST_F(Priority, WithoutAgeingTimeEverybodyIsEqual) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  options.priority_ageing = {};
  Rig rig(options);
  for (const std::int32_t priority : {5, 0, -5}) submit(rig, priority);
  EXPECT_EQ(order_of_ends(rig), (std::vector<std::size_t>{0, 1, 2}));
  rig.run_to_end();
}

TEST_F(Priority, WaitingOutweighsIt) {
  const Clock::time_point start = Clock::time_point(seconds(1000));
  const Rank waiting(start, 100, seconds(10), 1);
  EXPECT_LT(Rank(start + seconds(1999), -100, seconds(10), 2), waiting);
  EXPECT_GT(Rank(start + seconds(2001), -100, seconds(10), 2), waiting);
  EXPECT_GT(Rank(start, 100, seconds(10), 2), waiting) << "the same class and moment: as submitted";
}

TEST_F(Priority, OutOfRangeIsRefused) {
  Rig rig;
  for (const std::int32_t priority : {-101, 101}) {
    GenerationRequest request;
    request.prompt = {1};
    request.priority = priority;
    const auto refused = rig.scheduler->submit(std::move(request));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, "priority");
  }
  rig.run_to_end();
}

TEST_F(Priority, SmallOnesPassABlockedLargeOneButNotForEver) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  Rig rig(options);
  submit(rig, 0, 60, 60);  // 15 blocks at first, 30 in the end
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().decoding == 1; }));
  const Client& large = submit(rig, 0, 120, 2);
  for (int i = 0; i < 100; ++i) submit(rig, 0, 4, 2);
  const std::vector<std::size_t> order = order_of_ends(rig);
  const auto place = std::ranges::find(order, std::size_t{1}) - order.begin();
  EXPECT_GE(place, 10) << "some have passed";
  EXPECT_LE(place, 30) << "and then no more";
  rig.expect_right(large);
  rig.run_to_end();
}

TEST_F(Priority, WorsePrioritiesGiveTheirBlocksFirst) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  options.priority_ageing = {};  // admitted as submitted
  Rig rig(options);
  for (int i = 0; i < 8; ++i) submit(rig, i < 4 ? 1 : 0, 10, 40);
  const std::vector<std::size_t> order = order_of_ends(rig);
  EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  EXPECT_EQ(order[0], 0U) << "the first goes on whatever it is";
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(order[i], 4U);
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST_F(Priority, WhoLosesLeastGivesWay) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 32;
  options.max_batch_tokens = 40;
  options.prefix_cache = false;
  Rig rig(options);
  submit(rig, 0, 40, 40);  // the first
  submit(rig, 0, 9, 30);   // its last block is nearly empty
  submit(rig, 0, 40, 30);  // more work than the second, and later
  ASSERT_TRUE(rig.run_until([&] {
    for (const auto& client : rig.clients) client->take();
    return rig.scheduler->stats().preemptions == 1;
  }));
  EXPECT_NE(rig.phase(*rig.clients[0]), SequencePhase::kWaiting);
  order_of_ends(rig);
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST_F(Priority, ThousandsWaitInOrder) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch = 1;
  options.max_waiting = 4'000;
  Rig rig(options);
  rig.model.hold();
  submit(rig, -100);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().prefilling + rig.scheduler->stats().decoding == 1; }));
  for (int i = 0; i < 4'000; ++i) submit(rig, (i * 37) % 201 - 100, 1, 1);
  rig.model.release();
  std::size_t ended = 0;
  std::vector<Client*> in_class_order;
  for (const auto& client : rig.clients) in_class_order.push_back(client.get());
  std::stable_sort(in_class_order.begin() + 1, in_class_order.end(), [](const Client* one, const Client* other) {
    const auto class_of = [](const Client* client) { return (std::stoi(client->id.substr(8)) - 1) * 37 % 201; };
    return class_of(one) < class_of(other);
  });
  ASSERT_TRUE(rig.run_until([&] {
    while (ended < in_class_order.size() && (in_class_order[ended]->take(), in_class_order[ended]->finished())) ++ended;
    if (ended + 2 < in_class_order.size()) {
      EXPECT_FALSE((in_class_order[ended + 2]->take(), in_class_order[ended + 2]->finished()));
    }
    return ended == in_class_order.size();
  }));
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
