// Newer weights of an adapter: what becomes of those who use the older ones, and of nobody else.
#include "app/serving/background.h"
#include "app/updated_model.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

namespace asio = boost::asio;
struct AdapterUpdates : testing::Test, updated::UpdatedModel {
  AdapterUpdates()
      : UpdatedModel({.end =
                          [this](const auto& is_such, const Error&) {
    for (const auto& [name, use] : uses)
      if (is_such(use)) ended.push_back(name);
                      },
                      .change =
                          [this](const auto& newer) {
    for (auto& [name, use] : uses)
      if (std::optional<AdapterUse> next = newer(use)) use = std::move(*next);
                      }}) {}

  // What runs, by name.
  std::map<std::string, AdapterUse> uses;
  std::vector<std::string> ended;
  const std::shared_ptr<const ServedModel> served = std::make_shared<ServedModel>();

  template <class Value>
  Result<Value> run(asio::awaitable<Result<Value>> work) {
    Result<Value> outcome = Error{ErrorCode::kInternal, "it did not end", {}};
    asio::co_spawn(
        loop,
        [](Result<Value>& told, asio::awaitable<Result<Value>> its_work) -> asio::awaitable<void> { told = co_await std::move(its_work); }(
                                                                             outcome, std::move(work)),
        asio::detached);
    loop.restart();
    loop.run();
    return outcome;
  }

  Result<AdapterFacts> load(const std::string& name, const std::string& path, std::optional<UpdateMode> replacing = {}) {
    return run(adapters.load(name, {.path = path, .tensors = {}, .checksum = {}}, replacing));
  }
  Result<WeightFacts> update_base(UpdateMode mode) { return run(weights.update(newer_weights(), mode)); }
  // What a request has that is being prepared.
  AdapterUse prepared(const std::vector<AdapterChoice>& choices) { return adapters.apply(served, choices).value()->adapter; }
  AdapterUse submitted(const std::vector<AdapterChoice>& choices) { return adapters.current(prepared(choices)).value(); }
};

TEST_F(AdapterUpdates, HaveThoseAloneGoOnWithThemWhoUsedTheOlderOnes) {
  const std::string older = load("a", write_adapter("a", false))->revision;
  const std::string other = load("b", write_adapter("b", false))->revision;
  uses = {{"a", submitted({{.name = "a"}})},
          {"b", submitted({{.name = "b"}})},
          {"base", submitted({})},
          {"both", submitted({{.name = "b", .scale = 0.5F}, {.name = "a", .scale = 2.0F}})}};
  const AdapterUse waiting = prepared({{.name = "a"}});
  EXPECT_EQ(waiting.revision, older);
  const Result<AdapterFacts> newer = load("a", write_adapter("a2", false), UpdateMode::kKeep);
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(uses["a"].revision, newer->revision);
  EXPECT_EQ(uses["b"].revision, other);
  EXPECT_EQ(uses["base"].revision, "");
  EXPECT_EQ(uses["both"].revision, other + "*0.5+" + newer->revision + "*2");
  EXPECT_EQ(adapters.current(waiting)->revision, newer->revision) << "it had not been submitted";
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(newer->number, 0U);
}

// Also when there are newer ones by then.
TEST_F(AdapterUpdates, LeaveTheLayerThatIsTunedToTheWeightsThatTextsAreReadWith) {
  constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  const AdapterUse older = submitted({});
  const auto score_with = [&](const AdapterUse& use) {
    const std::shared_ptr<TunableLayer> layer = run(adapters.tunable_layer(use, {}, kNoLimit)).value();
    std::vector<float> inputs(std::size_t{3} * 64);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i % 17) - 8.0F;
    layer->begin_text(inputs);
    while (!layer->is_over()) layer->advance(1000);
    const std::vector<float> parameters(layer->parameter_count(), 0.1F);
    layer->begin_score(0, parameters);
    while (!layer->is_over()) layer->advance(1000);
    return layer->score();
  };
  const double before = score_with(older);
  update_base(UpdateMode::kFinish).value();
  EXPECT_EQ(score_with(older), before);
  EXPECT_NE(score_with(submitted({})), before);
  const Result<std::shared_ptr<TunableLayer>> refused =
      run(adapters.tunable_layer(older, {.rank = 2, .alpha = 1.0F, .modules = {"in_proj"}}, kNoLimit));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(AdapterUpdates, EndThoseAloneWhoUsedTheOlderOnes) {
  load("a", write_adapter("a", false)).value();
  load("b", write_adapter("b", false)).value();
  uses = {{"a", submitted({{.name = "a"}})}, {"b", submitted({{.name = "b"}})}, {"base", submitted({})}};
  const AdapterUse waiting = prepared({{.name = "a"}});
  const AdapterFacts newer = load("a", write_adapter("a2", false), UpdateMode::kAbort).value();
  EXPECT_EQ(ended, std::vector<std::string>{"a"});
  EXPECT_EQ(adapters.current(waiting)->revision, newer.revision);
  load("b", write_adapter("b2", false), UpdateMode::kFinish).value();
  load("b", folder / "b2", UpdateMode::kAbort).value();
  EXPECT_EQ(ended.size(), 1U) << "they end on what they began with, and the same again is no other";
}

// One that has magnitudes now cannot be used with others, or in a share: those stay with what they have.
TEST_F(AdapterUpdates, LeaveWhoCannotUseTheNewerOnes) {
  const std::string older = load("a", write_adapter("a", false))->revision;
  load("b", write_adapter("b", false)).value();
  uses = {{"alone", submitted({{.name = "a"}})},
          {"both", submitted({{.name = "a"}, {.name = "b"}})},
          {"half", submitted({{.name = "a", .scale = 0.5F}})}};
  const auto before = uses;
  ASSERT_TRUE(update_base(UpdateMode::kFinish));  // what follows from the weights is made for these
  const Result<AdapterFacts> newer = load("a", write_adapter("dora", true), UpdateMode::kKeep);
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(uses["alone"].revision, revisions.base().revision + "+" + newer->revision);
  for (const char* name : {"both", "half"}) EXPECT_EQ(uses[name].revision, before.at(name).revision) << name;
}

// Neither of the names is needed for the other.
TEST_F(AdapterUpdates, OfTheBaseFindTheSameMagnitudesUnderTwoNames) {
  const std::string path = write_adapter("dora", true);
  for (const char* name : {"a", "b"}) load(name, path).value();
  uses = {{"b", submitted({{.name = "b"}})}};
  const AdapterUse waiting = prepared({{.name = "b"}});
  ASSERT_TRUE(update_base(UpdateMode::kKeep));
  ASSERT_TRUE(adapters.unload("a"));
  const Result<AdapterUse> current = adapters.current(waiting);
  ASSERT_TRUE(current) << current.error().message;
  EXPECT_EQ(current->revision, uses["b"].revision);
  uses.clear();
  ASSERT_TRUE(load("c", path));
  ASSERT_TRUE(adapters.unload("c"));
  EXPECT_TRUE(adapters.current(prepared({{.name = "b"}})));
}

// Nor does anybody need to run who has them.
TEST_F(AdapterUpdates, OfTheBaseFindTheSameMagnitudesForWhoWaitsAlone) {
  const std::string path = write_adapter("dora", true);
  for (const char* name : {"a", "b"}) load(name, path).value();
  const AdapterUse waiting = prepared({{.name = "b"}});
  ASSERT_TRUE(update_base(UpdateMode::kAbort));
  ASSERT_TRUE(adapters.unload("a"));
  const Result<AdapterUse> current = adapters.current(waiting);
  ASSERT_TRUE(current) << current.error().message;
  EXPECT_NE(current->revision, waiting.revision);
}

// Under two names, one of which is gone, and in no name's way.
TEST_F(AdapterUpdates, OfANameAreNoUpdatesOfAnotherOneOfTheSameAdapter) {
  const std::string path = write_adapter("a", false);
  for (const char* name : {"a", "b", "c"}) load(name, path).value();
  uses = {{"a", submitted({{.name = "a"}})}, {"b", submitted({{.name = "b"}})}, {"c", submitted({{.name = "c"}})}};
  EXPECT_EQ(uses["a"].revision, uses["b"].revision) << "they share what is cached of prompts";
  ASSERT_TRUE(adapters.unload("c"));
  const AdapterUse waiting = prepared({{.name = "a"}});
  const std::string older = waiting.revision;
  const AdapterFacts newer = load("b", write_adapter("b", false), UpdateMode::kKeep).value();
  EXPECT_EQ(uses["b"].revision, newer.revision);
  for (const char* name : {"a", "c"}) EXPECT_EQ(uses[name].revision, older) << name;
  EXPECT_EQ(adapters.current(waiting)->revision, older);
  load("a", folder / "b", UpdateMode::kAbort).value();
  EXPECT_EQ(ended, std::vector<std::string>{"a"});
}

TEST_F(AdapterUpdates, ThatFailLeaveTheOlderOnesLive) {
  const std::string older = load("a", write_adapter("a", false))->revision;
  uses = {{"a", submitted({{.name = "a"}})}};
  const std::string odd = write_adapter("odd", false);
  const std::string file_path = odd + "/adapter_model.safetensors";
  const auto size = std::filesystem::file_size(file_path);
  const auto expect_old = [&] {
    EXPECT_TRUE(ended.empty());
    EXPECT_EQ(uses["a"].revision, older);
    EXPECT_EQ(prepared({{.name = "a"}}).revision, older);
  };
  for (const std::uintmax_t left : {size - 1, size / 2, std::uintmax_t{7}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(file_path, left);
    for (const UpdateMode mode : {UpdateMode::kFinish, UpdateMode::kKeep, UpdateMode::kAbort}) EXPECT_FALSE(load("a", odd, mode)) << left;
    expect_old();
  }
  for (const char* gone : {"adapter_model.safetensors", "adapter_config.json"}) {
    std::filesystem::remove(std::filesystem::path(odd) / gone);
    EXPECT_FALSE(load("a", odd, UpdateMode::kKeep)) << gone;
    expect_old();
  }
}

// On the loop the end of a large one would hold up all others: nothing of it stays there, however soon the other thread is done.
TEST(Discarding, EndsOnTheOtherThread) {
  asio::thread_pool pool(1);
  std::thread::id ended_on;
  std::shared_ptr<const void> large(&pool, [&](const void*) { ended_on = std::this_thread::get_id(); });
  discard_on(pool, std::move(large));
  EXPECT_EQ(large, nullptr);
  large.reset();
  pool.join();
  EXPECT_NE(ended_on, std::thread::id());
  EXPECT_NE(ended_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace braid::app
