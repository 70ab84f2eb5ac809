// Newer weights of an adapter: what becomes of those who use the older ones, and of nobody else.
#include "app/serving/model_weights.h"
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/tiny_model.h"
#include "support/folder.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

namespace asio = boost::asio;
using model::test::TinyModel;
using model::test::adapting::random_values;
using model::test::adapting::Tensors;
using model::test::adapting::write_file;

struct AdapterUpdates : testing::Test {
  const braid::test::Folder folder;
  asio::io_context loop;
  asio::thread_pool workers{1};
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const files::GgufFile file = TinyModel().file();
  std::unique_ptr<model::LanguageModel> language_model =
      model::LanguageModel::load(file, table, {.max_batch = 2, .end_tokens = {2}, .progress = {}}).value();
  // What runs, by name.
  std::map<std::string, AdapterUse> uses;
  std::vector<std::string> ended;
  const RunningRequests running{.end =
                                    [this](const auto& is_such, const Error&) {
    for (const auto& [name, use] : uses)
      if (is_such(use)) ended.push_back(name);
                                },
                                .change =
                                    [this](const auto& newer) {
    for (auto& [name, use] : uses)
      if (std::optional<AdapterUse> next = newer(use)) use = std::move(*next);
                                }};
  ModelRevisions revisions{workers, *language_model};
  ModelAdapters adapters{workers, revisions, AdapterBase{*language_model, table, "", "loaded"}, running};
  ModelWeights weights{workers,  *language_model, std::make_shared<const model::LoadedTensors>(model::LoadedTensors::of(file)),
                       "loaded", revisions,       adapters,
                       running};
  std::mt19937 random{1};
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

  std::string written(const std::string& name, bool is_dora) {
    Tensors tensors;
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj.";
    tensors.add(module + "lora_A.weight", random_values(random, {2, 64}, 0.1F));
    tensors.add(module + "lora_B.weight", random_values(random, {64, 2}, 0.1F));
    if (is_dora) tensors.add(module + "lora_magnitude_vector", random_values(random, {64}, 1.0F));
    const std::string path = folder / name;
    std::filesystem::create_directories(path);
    write_file(path + "/adapter_config.json",
               std::string(R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"],"use_dora":)") +
                   (is_dora ? "true}" : "false}"));
    write_file(path + "/adapter_model.safetensors", tensors.file());
    return path;
  }
  Result<AdapterFacts> load(const std::string& name, const std::string& path, std::optional<UpdateMode> replacing = {}) {
    return run(adapters.load(name, {.path = path, .tensors = {}, .checksum = {}}, replacing));
  }
  Result<WeightFacts> update_base(UpdateMode mode) {
    Tensors tensors;
    tensors.add("blk.0.attn_q.weight", random_values(random, {64, 64}, 0.1F));
    const std::vector<std::byte> bytes = tensors.file();
    return run(weights.update(
        {.path = {}, .tensors = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), .partial = true, .checksum = {}},
        mode));
  }
  // What a request has that is being prepared.
  AdapterUse prepared(const std::vector<AdapterChoice>& choices) { return adapters.apply(served, choices).value()->adapter; }
  AdapterUse submitted(const std::vector<AdapterChoice>& choices) { return adapters.current(prepared(choices)).value(); }
};

TEST_F(AdapterUpdates, HaveThoseAloneGoOnWithThemWhoUsedTheOlderOnes) {
  const std::string older = load("a", written("a", false))->revision;
  const std::string other = load("b", written("b", false))->revision;
  uses = {{"a", submitted({{.name = "a"}})},
          {"b", submitted({{.name = "b"}})},
          {"base", submitted({})},
          {"both", submitted({{.name = "b", .scale = 0.5F}, {.name = "a", .scale = 2.0F}})}};
  const AdapterUse waiting = prepared({{.name = "a"}});
  EXPECT_EQ(waiting.revision, older);
  const Result<AdapterFacts> newer = load("a", written("a2", false), UpdateMode::kKeep);
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(uses["a"].revision, newer->revision);
  EXPECT_EQ(uses["b"].revision, other);
  EXPECT_EQ(uses["base"].revision, "");
  EXPECT_EQ(uses["both"].revision, other + "*0.5+" + newer->revision + "*2");
  EXPECT_EQ(adapters.current(waiting)->revision, newer->revision) << "it had not been submitted";
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(newer->number, 0U);
}

TEST_F(AdapterUpdates, EndThoseAloneWhoUsedTheOlderOnes) {
  load("a", written("a", false)).value();
  load("b", written("b", false)).value();
  uses = {{"a", submitted({{.name = "a"}})}, {"b", submitted({{.name = "b"}})}, {"base", submitted({})}};
  const AdapterUse waiting = prepared({{.name = "a"}});
  const AdapterFacts newer = load("a", written("a2", false), UpdateMode::kAbort).value();
  EXPECT_EQ(ended, std::vector<std::string>{"a"});
  EXPECT_EQ(adapters.current(waiting)->revision, newer.revision);
  load("b", written("b2", false), UpdateMode::kFinish).value();
  load("b", folder / "b2", UpdateMode::kAbort).value();
  EXPECT_EQ(ended.size(), 1U) << "they end on what they began with, and the same again is no other";
}

// One that has magnitudes now cannot be used with others, or in a share: those stay with what they have.
TEST_F(AdapterUpdates, LeaveWhoCannotUseTheNewerOnes) {
  const std::string older = load("a", written("a", false))->revision;
  load("b", written("b", false)).value();
  uses = {{"alone", submitted({{.name = "a"}})},
          {"both", submitted({{.name = "a"}, {.name = "b"}})},
          {"half", submitted({{.name = "a", .scale = 0.5F}})}};
  const auto before = uses;
  ASSERT_TRUE(update_base(UpdateMode::kFinish));  // what follows from the weights is made for these
  const Result<AdapterFacts> newer = load("a", written("dora", true), UpdateMode::kKeep);
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(uses["alone"].revision, revisions.base().revision + "+" + newer->revision);
  for (const char* name : {"both", "half"}) EXPECT_EQ(uses[name].revision, before.at(name).revision) << name;
}

// Neither of the names is needed for the other.
TEST_F(AdapterUpdates, OfTheBaseFindTheSameMagnitudesUnderTwoNames) {
  const std::string path = written("dora", true);
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

// Under two names, one of which is gone, and in no name's way.
TEST_F(AdapterUpdates, OfANameAreNoUpdatesOfAnotherOneOfTheSameAdapter) {
  const std::string path = written("a", false);
  for (const char* name : {"a", "b", "c"}) load(name, path).value();
  uses = {{"a", submitted({{.name = "a"}})}, {"b", submitted({{.name = "b"}})}, {"c", submitted({{.name = "c"}})}};
  EXPECT_EQ(uses["a"].revision, uses["b"].revision) << "they share what is cached of prompts";
  ASSERT_TRUE(adapters.unload("c"));
  const AdapterUse waiting = prepared({{.name = "a"}});
  const std::string older = waiting.revision;
  const AdapterFacts newer = load("b", written("b", false), UpdateMode::kKeep).value();
  EXPECT_EQ(uses["b"].revision, newer.revision);
  for (const char* name : {"a", "c"}) EXPECT_EQ(uses[name].revision, older) << name;
  EXPECT_EQ(adapters.current(waiting)->revision, older);
  load("a", folder / "b", UpdateMode::kAbort).value();
  EXPECT_EQ(ended, std::vector<std::string>{"a"});
}

TEST_F(AdapterUpdates, ThatFailLeaveTheOlderOnesLive) {
  const std::string older = load("a", written("a", false))->revision;
  uses = {{"a", submitted({{.name = "a"}})}};
  const std::string odd = written("odd", false);
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

}  // namespace
}  // namespace braid::app
