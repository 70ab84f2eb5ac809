// Resolvers that hang, and whoever has to end beside one.
#include "store/redis/name_lookup.h"

#include "store/bell.h"
#include "store/redis/redis_store.h"
#include "store/rig.h"

#include <atomic>
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::store::test {
namespace {

using Numbers = std::vector<std::string>;

// Hangs until it is released. Its threads may outlive the test.
class HangingResolver {
 public:
  ~HangingResolver() { release(); }
  Resolver resolver() const {
    return [state = state_](const std::string&) {
      ++state->asked;
      state->begun.set_value();
      state->released.wait();
      return Numbers{"192.0.2.1", "2001:db8::1"};
    };
  }
  void release() {
    if (!std::exchange(is_released_, true)) state_->release.set_value();
  }
  void wait_until_asked() const { state_->begun.get_future().wait(); }
  int asked() const { return state_->asked; }

 private:
  struct State {
    std::promise<void> begun;
    std::promise<void> release;
    const std::shared_future<void> released{release.get_future()};
    std::atomic<int> asked{0};
  };
  bool is_released_ = false;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

constexpr std::chrono::hours kForever{1};

TEST(NameLookup, ANumberIsWhatItStandsFor) {
  const Bell stop = Bell::make().value();
  for (const std::string number : {"127.0.0.1", "::1"}) {
    NameLookup lookup(number, [](const std::string&) -> Numbers {
      ADD_FAILURE() << "nobody is to be asked";
      return {};
    });
    EXPECT_EQ(lookup.numbers(stop.descriptor(), NameLookup::Clock::now()).value(), Numbers{number});
  }
}

TEST(NameLookup, TheSystemKnowsThisMachine) {
  const Numbers numbers = ask_system("localhost");
  ASSERT_FALSE(numbers.empty());
  EXPECT_TRUE(numbers.front() == "127.0.0.1" || numbers.front() == "::1") << numbers.front();
}

TEST(NameLookup, OneThatIsLateIsAskedOnce) {
  const Bell stop = Bell::make().value();
  HangingResolver hanging;
  NameLookup lookup("cache", hanging.resolver());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(lookup.numbers(stop.descriptor(), NameLookup::Clock::now()));
  hanging.release();
  const Result<Numbers> numbers = lookup.numbers(stop.descriptor(), NameLookup::Clock::now() + kForever);
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, (Numbers{"192.0.2.1", "2001:db8::1"}));
  EXPECT_EQ(hanging.asked(), 1);
}

TEST(NameLookup, ItsEndAndAStopWaitForNoAnswer) {
  Bell stop = Bell::make().value();
  const HangingResolver hanging;
  NameLookup lookup("cache", hanging.resolver());
  lookup.begin();
  hanging.wait_until_asked();
  stop.ring();
  EXPECT_FALSE(lookup.numbers(stop.descriptor(), NameLookup::Clock::now() + kForever));
}

RedisOptions named(const Resolver& resolver, std::chrono::milliseconds timeout) {
  RedisOptions options;
  options.address.host = "cache";
  options.timeout = timeout;
  options.identity = small_options({}).identity;
  options.payload_bytes = small_options({}).payload_bytes;
  options.pause = kForever;
  options.resolve = resolver;
  return options;
}

TEST(NameLookup, AServerEndsWhileTheNameOfItsRedisIsLookedUp) {
  const HangingResolver hanging;
  Loop loop;
  auto store = RedisStore::open(named(hanging.resolver(), kForever), record_buffers(small_options({})), loop.post()).value();
  store->look_up({Block(1, 0).key}, [] { FAIL() << "it has not been answered"; });
  hanging.wait_until_asked();
  store.reset();
}

TEST(NameLookup, ARedisWhoseNameIsNotFoundInTimeIsLeftAlone) {
  const HangingResolver hanging;
  Loop loop;
  const auto store =
      RedisStore::open(named(hanging.resolver(), std::chrono::milliseconds(50)), record_buffers(small_options({})), loop.post()).value();
  bool is_answered = false;
  store->look_up({Block(1, 0).key}, [&] { is_answered = true; });
  ASSERT_TRUE(loop.run_until([&] { return is_answered; }));
  EXPECT_EQ(store->stats().failures, 1U);
  EXPECT_FALSE(store->stats().is_up);
  EXPECT_FALSE(write(*store, loop, Block(1, 0)));
  EXPECT_EQ(hanging.asked(), 1);
}

TEST(NameLookup, ANameThatStandsForNothingIsAFailure) {
  Loop loop;
  const auto nothing = [](const std::string&) { return Numbers(); };
  const auto store = RedisStore::open(named(nothing, kForever), record_buffers(small_options({})), loop.post()).value();
  bool is_answered = false;
  store->look_up({Block(1, 0).key}, [&] { is_answered = true; });
  ASSERT_TRUE(loop.run_until([&] { return is_answered; }));
  EXPECT_EQ(store->stats().failures, 1U);
}

}  // namespace
}  // namespace braid::store::test
