// Models come and go: who asks gets what he asked for, and nobody loses what he uses.
#include "app/serving/model_slots.h"

#include "app/serving/model_adapters.h"
#include "app/serving/model_weights.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace braid::app {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

// What has been made and not been destroyed.
struct World {
  std::set<std::string> alive;
  std::vector<std::string> made;
  std::map<std::string, std::uint64_t> pools;   // of those that are loaded
  std::map<std::string, std::uint64_t> most;    // to which they may grow
  std::map<std::string, std::uint64_t> floors;  // below which a pool cannot shrink
  std::map<std::string, Error> look_fails, make_fails, warm_fails, restore_fails;
  std::map<std::string, std::string> revisions;                               // of the newer weights of those that are loaded
  std::map<std::string, std::function<void(const std::string& why)>> breaks;  // of those that are loaded
  std::optional<std::uint64_t> pool_elsewhere;
  std::optional<Error> memory_fails;
  std::uint64_t left = 1000 * kMiB;  // of the system, with nothing loaded
};

struct Remains {
  Remains(World& owner, std::string what) : world(owner), id(std::move(what)) { world.alive.insert(id); }
  ~Remains() { world.alive.erase(id); }
  World& world;
  std::string id;
};

class FakeEngine final : public ServedEngine {
 public:
  FakeEngine(asio::io_context& loop, World& world, const std::string& id, const PoolBytes& pool)
      : loop_(loop), world_(world), remains_(std::make_shared<Remains>(world, id)) {
    served_.id = id;
    world.pools[id] = pool.first;
    world.most[id] = std::max(pool.first, pool.most);
  }
  std::vector<std::string> description() const override { return {}; }
  std::string state() const override { return {}; }
  EngineMemory memory() const override { return {this, 100 * kMiB, 0, world_.pools[served_.id]}; }
  asio::awaitable<Result<void>> warm_up(std::int32_t) override {
    if (const auto fault = world_.warm_fails.find(served_.id); fault != world_.warm_fails.end()) co_return fault->second;
    co_return Result<void>();
  }
  std::shared_ptr<const KeptWeights> keep_weights() const override {
    if (!world_.revisions.contains(served_.id)) return nullptr;
    auto kept = std::make_shared<KeptWeights>();
    kept->facts.revision = world_.revisions[served_.id];
    return kept;
  }
  asio::awaitable<Result<void>> restore_weights(std::shared_ptr<const KeptWeights> kept) override {
    if (const auto fault = world_.restore_fails.find(served_.id); fault != world_.restore_fails.end()) co_return fault->second;
    world_.revisions[served_.id] = kept->facts.revision;
    co_return Result<void>();
  }
  std::shared_ptr<const KeptAdapters> keep_adapters() const override { return adapters_; }
  asio::awaitable<void> restore_adapters(std::shared_ptr<const KeptAdapters> kept) override {
    adapters_ = std::move(kept);
    co_return;
  }
  void begin_drain() override {}
  asio::awaitable<bool> drained(std::chrono::steady_clock::time_point) override { co_return true; }
  void abort_remaining(const Error&) override {}
  void on_broken(std::function<void(const std::string& why)> tell) override { world_.breaks[served_.id] = std::move(tell); }
  asio::awaitable<std::shared_ptr<void>> end() override {
    world_.pools.erase(served_.id);
    world_.revisions.erase(served_.id);
    co_return std::shared_ptr<void>(std::move(remains_));
  }
  bool resize_pool(std::uint64_t bytes, std::function<void()> on_given_back) override {
    std::uint64_t& pool = world_.pools[served_.id];
    const std::uint64_t before = pool;
    pool = std::max(std::min(world_.most[served_.id], bytes), world_.floors[served_.id]);
    if (pool < before) asio::post(loop_, std::move(on_given_back));
    return pool < before;
  }

 private:
  asio::io_context& loop_;
  World& world_;
  std::shared_ptr<Remains> remains_;
  std::shared_ptr<const KeptAdapters> adapters_;
};

class FakeWorkshop final : public Workshop {
 public:
  FakeWorkshop(asio::io_context& loop, World& world) : loop_(loop), world_(world) {}
  asio::awaitable<Result<ModelNeeds>> look(const ServedModelOptions& model) override {
    if (const auto fault = world_.look_fails.find(model.id); fault != world_.look_fails.end()) co_return fault->second;
    ModelNeeds needs;
    needs.fixed = 100 * kMiB;
    needs.kv = {.block_bytes = kMiB, .block_tokens = 16, .max_batch = 256, .model_context = 160};
    needs.pool_elsewhere = world_.pool_elsewhere;
    co_return needs;
  }
  asio::awaitable<Result<std::uint64_t>> memory_left(std::uint64_t) override {
    if (world_.memory_fails) co_return *world_.memory_fails;
    std::uint64_t taken = 0;
    for (const auto& [id, pool] : world_.pools) taken += 100 * kMiB + pool;
    co_return world_.left - taken;
  }
  asio::awaitable<Result<std::unique_ptr<ServedEngine>>> make(const ServedModelOptions& model, PoolBytes pool,
                                                              OnProgress on_progress) override {
    on_progress({"weights", 50, 100});
    if (const auto fault = world_.make_fails.find(model.id); fault != world_.make_fails.end()) co_return fault->second;
    world_.made.push_back(model.id);
    co_return std::make_unique<FakeEngine>(loop_, world_, model.id, pool);
  }
  asio::awaitable<void> discard(std::shared_ptr<void> remains) override {
    remains.reset();
    co_return;
  }
  void cancel() override { is_cancelled = true; }

  bool is_cancelled = false;

 private:
  asio::io_context& loop_;
  World& world_;
};

std::vector<FoundModel> models(std::vector<std::string> ids) {
  std::vector<FoundModel> found;
  for (std::string& id : ids) {
    FoundModel& model = found.emplace_back();
    model.options.id = std::move(id);
    if (model.options.id == "alpha") model.aliases = {"first"};
  }
  return found;
}

struct Slots : testing::Test {
  void begin(SlotOptions options = {}, FindModels find = {}) {
    if (options.keep_alive == SlotOptions().keep_alive) options.keep_alive = kKeepForever;
    slots.emplace(loop, workshop, options, std::move(find), models({"alpha", "beta", "gamma"}), [this] { ++changes; });
  }
  void settle() {
    loop.restart();
    loop.poll();
  }
  void settle_timers() {  // until nothing is waited for
    loop.restart();
    loop.run();
  }
  ModelHold load(const std::string& name) {
    const auto wait = slots->ask(name);
    settle();
    return wait->result && *wait->result ? **wait->result : nullptr;
  }
  ModelState state(const std::string& id) const {
    for (const KnownModel& model : slots->known())
      if (model.id == id) return model.state;
    ADD_FAILURE() << id << " is not known";
    return ModelState::kUnloaded;
  }

  asio::io_context loop;
  World world;
  FakeWorkshop workshop{loop, world};
  int changes = 0;
  std::optional<ModelSlots> slots;
};

TEST_F(Slots, LoadAModelOnceForAllWhoAskForIt) {
  begin();
  EXPECT_EQ(slots->take("alpha"), nullptr);
  const auto one = slots->ask("alpha");
  const auto other = slots->ask("first");
  settle();
  ASSERT_TRUE(one->result && *one->result && other->result && *other->result);
  EXPECT_EQ((**one->result)->id, "alpha");
  EXPECT_EQ(**one->result, **other->result);
  EXPECT_EQ(one->progress.step, "weights");
  EXPECT_EQ(world.made, std::vector<std::string>{"alpha"});
  EXPECT_EQ(slots->take("alpha"), **one->result);
}

TEST_F(Slots, TheOneUnusedForLongestMakesRoom) {
  begin({.most_loaded = 2});
  load("alpha");
  load("beta");
  EXPECT_NE(slots->take("alpha"), nullptr);  // used after beta
  EXPECT_NE(load("gamma"), nullptr);
  EXPECT_EQ(world.alive, (std::set<std::string>{"alpha", "gamma"}));
  EXPECT_EQ(state("beta"), ModelState::kUnloaded);
}

TEST_F(Slots, WhatIsInUseIsWaitedFor) {
  begin({.most_loaded = 1});
  ModelHold used = load("alpha");
  const auto wait = slots->ask("beta");
  settle();
  EXPECT_FALSE(wait->result);
  EXPECT_EQ(world.alive, std::set<std::string>{"alpha"});
  used.reset();
  settle();
  ASSERT_TRUE(wait->result && *wait->result);
  EXPECT_EQ(world.alive, std::set<std::string>{"beta"});
}

TEST_F(Slots, WhoFindsNoRoomIsToldWhenToComeAgain) {
  begin({.most_loaded = 1, .load_timeout = 20ms});
  const ModelHold used = load("alpha");
  const auto wait = slots->ask("beta");
  settle_timers();
  ASSERT_TRUE(wait->result);
  EXPECT_EQ(wait->result->error().code, ErrorCode::kModelNotLoaded);
  EXPECT_GE(wait->result->error().retry_after, 1s);
  EXPECT_EQ(state("alpha"), ModelState::kLoaded);
  EXPECT_EQ(state("beta"), ModelState::kUnloaded);
}

TEST_F(Slots, TooManyDoNotWait) {
  begin({.most_loaded = 1, .most_waiting = 2});
  const ModelHold used = load("alpha");
  const auto one = slots->ask("beta");
  auto two = slots->ask("beta");
  EXPECT_EQ(slots->ask("beta")->result->error().code, ErrorCode::kModelNotLoaded);
  two.reset();  // has gone
  EXPECT_FALSE(slots->ask("beta")->result);
}

TEST_F(Slots, AFailureAtAnyStepNamesItsCauseAndHarmsNobody) {
  begin();
  const ModelHold used = load("alpha");
  const Error bad{ErrorCode::kBadFile, "the file ends in its middle", {}};
  for (const int step : {0, 1, 2, 3}) {
    if (step == 0) world.look_fails["beta"] = bad;
    if (step == 1) world.memory_fails = bad;
    if (step == 2) world.make_fails["beta"] = bad;
    if (step == 3) world.warm_fails["beta"] = bad;
    const auto wait = slots->ask("beta");
    settle();
    ASSERT_TRUE(wait->result) << step;
    ASSERT_FALSE(*wait->result) << step;
    EXPECT_THAT(wait->result->error().message, HasSubstr("'beta' cannot be loaded: the file ends in its middle")) << step;
    EXPECT_EQ(slots->known()[1].failure, bad.message) << step;
    EXPECT_EQ(world.alive, std::set<std::string>{"alpha"}) << step;
    EXPECT_EQ(slots->take("alpha"), used) << step;
    world.look_fails.clear();
    world.make_fails.clear();
    world.warm_fails.clear();
    world.memory_fails.reset();
  }
  EXPECT_NE(load("beta"), nullptr) << "the next one tries anew";
  EXPECT_EQ(slots->known()[1].failure, "");
}

TEST_F(Slots, KeepAliveEndsWithTheLastRequestOrLaterOrNever) {
  begin({.keep_alive = 10ms});
  load("alpha");
  ModelHold used = slots->take("alpha", kKeepForever);
  used.reset();
  settle_timers();
  EXPECT_EQ(state("alpha"), ModelState::kLoaded);
  used = slots->take("alpha", KeepAlive::zero());
  settle();
  EXPECT_EQ(state("alpha"), ModelState::kLoaded) << "in use";
  used.reset();
  settle();
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded);
  load("alpha");
  EXPECT_TRUE(slots->known().front().expires);
  settle_timers();
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded);
  EXPECT_TRUE(world.alive.empty());
}

TEST_F(Slots, AnUnloadingWaitsForWhoUsesItAndTheNextOneLoadsItAnew) {
  begin();
  ModelHold used = load("alpha");
  const auto end = slots->unload("alpha");
  settle();
  EXPECT_FALSE(end->result);
  EXPECT_EQ(slots->take("alpha"), nullptr);
  const auto next = slots->ask("alpha");
  settle();
  EXPECT_FALSE(next->result);
  used.reset();
  settle();
  EXPECT_TRUE(end->result && *end->result);
  EXPECT_TRUE(next->result && *next->result);
  EXPECT_EQ(world.made, (std::vector<std::string>{"alpha", "alpha"}));
  EXPECT_TRUE(*slots->unload("beta")->result) << "is not loaded";
  EXPECT_EQ(slots->unload("nobody")->result->error().code, ErrorCode::kNotFound);
}

TEST_F(Slots, WhoWaitsForAnUnloadingHoldsUpNobodyElse) {
  begin();
  ModelHold used = load("alpha");
  slots->unload("alpha");
  const auto next = slots->ask("alpha");
  settle();
  EXPECT_NE(load("beta"), nullptr);
  EXPECT_FALSE(next->result);
  used.reset();
  settle();
  EXPECT_TRUE(next->result && *next->result);
}

TEST_F(Slots, AModelThatIsLoadedAgainHasItsAdaptersWhoseNamesLoadIt) {
  begin();
  ModelHold used = load("alpha");
  const auto kept = std::make_shared<const KeptAdapters>(
      KeptAdapters{.base = "weights", .entries = {{{.name = "tuned", .revision = "r", .path = {}}, nullptr}}, .numbers = 1});
  asio::co_spawn(loop, slots->engines().front()->restore_adapters(kept), asio::detached);
  settle();
  used.reset();
  slots->unload("alpha");
  settle();
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded);
  EXPECT_EQ(slots->find("alpha:tuned").value(), "alpha");
  EXPECT_FALSE(slots->find("other"));
  used = load("tuned");
  ASSERT_NE(used, nullptr);
  EXPECT_EQ(used->id, "alpha");
  EXPECT_EQ(slots->engines().front()->keep_adapters()->entries.size(), 1U);
}

TEST_F(Slots, APoolShrinksBeforeSomebodyGoes) {
  begin({.memory = {.total = 400 * kMiB}});
  const ModelHold used = load("alpha");  // 100 MiB, and a pool of all the rest
  EXPECT_EQ(world.pools["alpha"], 300 * kMiB);
  EXPECT_NE(load("beta"), nullptr);
  EXPECT_LE(world.pools["alpha"] + world.pools["beta"], 200 * kMiB);
  EXPECT_NEAR(static_cast<double>(world.pools["alpha"]), static_cast<double>(world.pools["beta"]), 50.0 * kMiB);
}

// Also beyond what it had at first, when another one took its part.
TEST_F(Slots, APoolGrowsWhenSomebodyGoes) {
  begin({.memory = {.total = 400 * kMiB}});
  load("alpha");
  const ModelHold used = load("beta");
  const std::uint64_t first = world.pools["beta"];
  EXPECT_LE(first, 100 * kMiB);
  slots->unload("alpha");
  settle();
  EXPECT_EQ(world.alive, std::set<std::string>{"beta"});
  EXPECT_EQ(world.pools["beta"], 300 * kMiB) << "what it would have had alone";
  EXPECT_NE(load("alpha"), nullptr);
  EXPECT_LE(world.pools["alpha"] + world.pools["beta"], 200 * kMiB);
}

TEST_F(Slots, WhatCannotShrinkIsWaitedForAndThenGoes) {
  begin({.memory = {.total = 400 * kMiB}});
  ModelHold used = load("alpha");
  world.floors["alpha"] = 250 * kMiB;  // its sequences need that
  const auto wait = slots->ask("beta");
  loop.restart();
  loop.run_for(50ms);
  EXPECT_FALSE(wait->result);
  used.reset();
  settle_timers();
  ASSERT_TRUE(wait->result && *wait->result);
  EXPECT_EQ(world.alive, std::set<std::string>{"beta"});
}

TEST_F(Slots, SleepLastsUntilSomebodyWakesThem) {
  begin();
  load("alpha");
  load("beta");
  const auto asleep = slots->sleep("", false);
  settle();
  ASSERT_TRUE(asleep->result && *asleep->result);
  EXPECT_EQ(state("alpha"), ModelState::kAsleep);
  EXPECT_TRUE(world.alive.empty());
  EXPECT_EQ(slots->ask("alpha")->result->error().code, ErrorCode::kModelNotLoaded);
  EXPECT_NE(load("gamma"), nullptr) << "was not put to sleep";
  const auto awake = slots->wake("alpha");
  settle();
  ASSERT_TRUE(awake->result && *awake->result);
  EXPECT_EQ(state("alpha"), ModelState::kLoaded);
  EXPECT_EQ(state("beta"), ModelState::kAsleep);
}

TEST_F(Slots, WhatSleepsBeforeItsTurnHoldsUpNobody) {
  begin({.most_loaded = 1});
  ModelHold used = load("alpha");
  auto beta = slots->ask("beta");  // waits for room, and gamma for it
  const auto gamma = slots->ask("gamma");
  settle();
  slots->sleep("gamma", false);
  settle();
  ASSERT_TRUE(gamma->result);
  EXPECT_EQ(gamma->result->error().code, ErrorCode::kModelNotLoaded);
  EXPECT_EQ(state("gamma"), ModelState::kAsleep);
  used.reset();
  settle();
  EXPECT_TRUE(beta->result && *beta->result);
  beta.reset();
  EXPECT_NE(load("alpha"), nullptr);
}

TEST_F(Slots, WhatFailsToLoadWhileItIsPutToSleepSleeps) {
  begin({.most_loaded = 1});
  world.make_fails["beta"] = {ErrorCode::kIo, "a machine is starting", {}};
  ModelHold used = load("alpha");
  const auto wait = slots->ask("beta");
  settle();
  ASSERT_EQ(state("beta"), ModelState::kLoading);
  const auto asleep = slots->sleep("beta", false);
  settle();
  used.reset();
  settle();
  EXPECT_TRUE(wait->result && !*wait->result);
  EXPECT_TRUE(asleep->result && *asleep->result);
  EXPECT_EQ(state("beta"), ModelState::kAsleep);
  world.make_fails.clear();
  slots->wake("beta");
  settle();
  EXPECT_EQ(state("beta"), ModelState::kLoaded);
}

TEST_F(Slots, WhatBreaksIsLoadedAgainUntilThatWorks) {
  begin({.reload_delay = 1ms});
  load("alpha");
  world.make_fails["alpha"] = {ErrorCode::kIo, "a machine is starting", {}};
  world.breaks["alpha"]("rank 1 is lost");
  EXPECT_EQ(slots->broken(), "the model 'alpha' is loaded again: rank 1 is lost");
  const int before = changes;
  settle();
  EXPECT_THAT(slots->broken(), HasSubstr("a machine is starting"));
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded);
  EXPECT_EQ(world.made.size(), 1U);
  world.make_fails.clear();
  settle_timers();  // nobody asks for it
  EXPECT_EQ(state("alpha"), ModelState::kLoaded);
  EXPECT_EQ(world.made.size(), 2U);
  EXPECT_EQ(slots->broken(), "");
  EXPECT_GT(changes, before);
}

TEST_F(Slots, WhatBreaksIsReadyAgainWithItsNewerWeightsAlone) {
  begin({.reload_delay = 1ms});
  load("alpha");
  world.revisions["alpha"] = "newer";
  world.restore_fails["alpha"] = {ErrorCode::kIo, "its newer weights: rank 0 is lost", {}};
  world.breaks["alpha"]("rank 1 is lost");
  settle();
  EXPECT_THAT(slots->broken(), HasSubstr("its newer weights: rank 0 is lost"));
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded) << "nobody is answered by the older ones";
  world.restore_fails.clear();
  settle_timers();
  EXPECT_EQ(state("alpha"), ModelState::kLoaded);
  EXPECT_EQ(world.revisions["alpha"], "newer");
  slots->unload("alpha");
  settle();
  ASSERT_NE(load("alpha"), nullptr);
  EXPECT_FALSE(world.revisions.contains("alpha")) << "who unloads it gets the file's weights";
}

TEST_F(Slots, WhatBrokeAndIsUnloadedComesBackWithTheWeightsOfItsFile) {
  begin({.reload_delay = 1ms});
  load("alpha");
  world.revisions["alpha"] = "newer";
  world.make_fails["alpha"] = {ErrorCode::kIo, "a machine is starting", {}};
  world.breaks["alpha"]("rank 1 is lost");
  settle();
  slots->unload("alpha");
  world.make_fails.clear();
  ASSERT_NE(load("alpha"), nullptr);
  EXPECT_FALSE(world.revisions.contains("alpha"));
}

TEST_F(Slots, WhatBrokeAndIsUnloadedOrSleepsIsNotLoadedAgain) {
  begin({.reload_delay = 1ms});
  for (const bool sleeps : {false, true}) {
    load("alpha");
    world.make_fails["alpha"] = {ErrorCode::kIo, "a machine is starting", {}};
    world.breaks["alpha"]("rank 1 is lost");
    settle();
    ASSERT_NE(slots->broken(), "");
    sleeps ? slots->sleep("alpha", false) : slots->unload("alpha");
    settle();
    EXPECT_EQ(slots->broken(), "") << sleeps;
    world.make_fails.clear();
    settle_timers();
    EXPECT_EQ(state("alpha"), sleeps ? ModelState::kAsleep : ModelState::kUnloaded);
  }
}

TEST_F(Slots, WhatBreaksWhileItIsUnwantedIsOnlyEnded) {
  begin();
  ModelHold used = load("alpha");
  const auto end = slots->unload("alpha");
  world.breaks["alpha"]("rank 1 is lost");
  EXPECT_EQ(slots->broken(), "");
  used.reset();
  settle_timers();
  EXPECT_TRUE(end->result && *end->result);
  EXPECT_EQ(state("alpha"), ModelState::kUnloaded);
  EXPECT_EQ(world.made.size(), 1U);
}

TEST_F(Slots, APoolOnOtherMachinesNeedsNothingHere) {
  begin();
  world.left = 10 * kMiB;
  world.pool_elsewhere = 700 * kMiB;
  EXPECT_NE(load("alpha"), nullptr);
  EXPECT_EQ(world.pools["alpha"], 700 * kMiB);
}

TEST_F(Slots, AnUnknownNameIsLookedForOnceMore) {
  int scans = 0;
  begin({}, [&scans] { return ++scans, models({"alpha", "delta"}); });
  const auto missing = slots->ask("epsilon");
  const auto there = slots->ask("delta");
  settle_timers();
  EXPECT_TRUE(there->result && *there->result);
  EXPECT_EQ(missing->result->error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing->result->error().message, HasSubstr("'alpha', 'delta'"));
  EXPECT_EQ(scans, 1);
  EXPECT_EQ(slots->known().size(), 2U) << "beta and gamma have gone";
}

TEST_F(Slots, WhatNobodyWaitsForAndHasNoFilesIsNotLoaded) {
  begin({.most_loaded = 1}, [] { return models({"alpha", "beta"}); });
  ModelHold used = load("alpha");
  const auto beta = slots->ask("beta");
  auto gamma = slots->ask("gamma");  // its turn comes after beta's
  settle();
  gamma.reset();                          // has gone
  const auto other = slots->ask("beta");  // which is noticed when somebody comes
  slots->look_again();
  loop.restart();
  while (slots->known().size() > 2) loop.run_one();
  used.reset();
  settle();
  EXPECT_TRUE(beta->result && *beta->result);
  EXPECT_TRUE(other->result && *other->result);
  EXPECT_EQ(world.made, (std::vector<std::string>{"alpha", "beta"}));
}

TEST_F(Slots, AnEndAnswersAllWhoWait) {
  begin({.most_loaded = 1});
  const ModelHold used = load("alpha");
  const auto wait = slots->ask("beta");
  settle();
  bool has_drained = false;
  asio::co_spawn(loop, slots->drain(std::chrono::steady_clock::now() + 1h),
                 [&](const std::exception_ptr&, bool all) { has_drained = all; });
  settle();
  EXPECT_TRUE(has_drained);
  EXPECT_TRUE(workshop.is_cancelled);
  EXPECT_EQ(wait->result->error().code, ErrorCode::kDraining);
  EXPECT_EQ(slots->ask("gamma")->result->error().code, ErrorCode::kDraining);
  EXPECT_EQ(world.made, std::vector<std::string>{"alpha"});
}

TEST(FindNamed, TakesAnIdAnAliasALikeNameOrTheOnlyBeginning) {
  const std::vector<std::string> aliases = {"chat"};
  const std::vector<NamedModel> models = {{"llama3:8b", aliases}, {"qwen/Qwen3-0.6B-Q8_0", {}}, {"qwen/Qwen3-1.7B-Q8_0", {}}, {"phi", {}}};
  EXPECT_EQ(find_named("phi", models).value(), 3U);
  EXPECT_EQ(find_named("chat", models).value(), 0U);
  EXPECT_EQ(find_named("llama3", models).value(), 0U);
  EXPECT_EQ(find_named("Qwen3-1.7B-Q8_0.gguf", models).value(), 2U);
  EXPECT_EQ(find_named("qwen/Qwen3-0", models).value(), 1U);
  const Error either = find_named("qwen/Qwen3", models).error();
  EXPECT_EQ(either.code, ErrorCode::kNotFound);
  EXPECT_THAT(either.message, HasSubstr("may be any of 'qwen/Qwen3-0.6B-Q8_0', 'qwen/Qwen3-1.7B-Q8_0'"));
  EXPECT_THAT(find_named("nobody", models).error().message, HasSubstr("this server has 'llama3:8b'"));
}

TEST(FindNamed, TellsTheNearestOfMany) {
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.push_back("some-other-model-" + std::to_string(i));
  ids.push_back("mistral-small");
  std::vector<NamedModel> models;
  for (const std::string& id : ids) models.push_back({id, {}});
  EXPECT_THAT(find_named("mistral-smal:7b", models).error().message, HasSubstr("the nearest names are 'mistral-small'"));
}

}  // namespace
}  // namespace braid::app
