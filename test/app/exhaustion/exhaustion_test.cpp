// Newer weights where each allocation on the way fails once: the old ones stay live, or the newer ones are whole. A program of its own: it
// replaces operator new. Asio's own allocations do not fail here: they would end the process (app/exhausted.h).
#include "app/serving/model_weights.h"
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/tiny_model.h"
#include "support/folder.h"
#include "support/operator_delete.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace {

constexpr std::int64_t kAllAllocations = std::numeric_limits<std::int64_t>::max();
thread_local std::int64_t allocations_left = kAllAllocations;  // of this thread; then one fails

void* allocate(std::size_t size, std::align_val_t alignment = std::align_val_t(alignof(std::max_align_t))) {
  void* memory = allocations_left-- != 0 ? memalign(static_cast<std::size_t>(alignment), size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
// simdjson's, which does not look at what it gets.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }

namespace braid::app {
namespace {

namespace asio = boost::asio;
using model::test::TinyModel;
using model::test::adapting::random_values;
using model::test::adapting::Tensors;
using model::test::adapting::write_file;

std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct UpdateFaults : testing::Test {
  const braid::test::Folder folder;
  asio::io_context loop;
  asio::thread_pool workers{1};
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const files::GgufFile file = TinyModel().file();
  std::unique_ptr<model::LanguageModel> language_model =
      model::LanguageModel::load(file, table, {.max_batch = 2, .end_tokens = {2}, .progress = {}}).value();
  const RunningRequests running{.end = [](const auto&, const Error&) {}, .change = [](const auto&) {}};
  ModelRevisions revisions{workers, *language_model};
  ModelAdapters adapters{workers, revisions, AdapterBase{*language_model, table, "", "loaded"}, running};
  ModelWeights weights{workers,  *language_model, std::make_shared<const model::LoadedTensors>(model::LoadedTensors::of(file)),
                       "loaded", revisions,       adapters,
                       running};
  std::mt19937 random{1};

  // What becomes of it; nothing: an exception.
  template <class Value>
  std::optional<Result<Value>> run(asio::awaitable<Result<Value>> work) {
    const auto outcome = std::make_shared<std::optional<Result<Value>>>();
    asio::co_spawn(
        loop,
        [](std::shared_ptr<std::optional<Result<Value>>> told, asio::awaitable<Result<Value>> its_work) -> asio::awaitable<void> {
          try {
            *told = co_await std::move(its_work);
          } catch (const std::bad_alloc&) {
          }
        }(outcome, std::move(work)),
        asio::detached);
    loop.restart();
    loop.run();
    return std::move(*outcome);
  }

  void on_worker(const std::function<void()>& action) {
    std::promise<void> done;
    asio::post(workers, [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }

  WeightSource newer() {
    Tensors tensors;
    tensors.add("output_norm.weight", random_values(random, {64}, 1.0F));
    tensors.add("blk.0.attn_q.weight", random_values(random, {64, 64}, 0.1F));
    return {.path = {}, .tensors = text_of(tensors.file()), .partial = true, .checksum = {}};
  }

  // An adapter that follows from the weights, so that an update makes it anew.
  std::string write_dora(const std::string& name) {
    Tensors tensors;
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj.";
    tensors.add(module + "lora_A.weight", random_values(random, {2, 64}, 0.1F));
    tensors.add(module + "lora_B.weight", random_values(random, {64, 2}, 0.1F));
    tensors.add(module + "lora_magnitude_vector", random_values(random, {64}, 1.0F));
    const std::string path = folder / name;
    std::filesystem::create_directories(path);
    write_file(path + "/adapter_config.json",
               std::string(R"({"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"],"use_dora":true})"));
    write_file(path + "/adapter_model.safetensors", tensors.file());
    return path;
  }
  void load_dora() {
    const std::string path = write_dora("dora");
    const auto loaded = run(adapters.load("dora", {.path = path, .tensors = {}, .checksum = {}}, std::nullopt));
    ASSERT_TRUE(loaded && *loaded) << (loaded ? loaded->error().message : "an exception");
  }

  struct State {
    std::shared_ptr<const model::Decoder> decoder;
    std::string revision;
    std::uint64_t updates = 0;
    bool operator==(const State&) const = default;
  };
  State state() const { return {revisions.base().decoder, revisions.base().revision, weights.facts().updates}; }
  // All parts tell the same revision.
  void expect_whole() const {
    EXPECT_EQ(weights.facts().revision, revisions.base().revision.empty() ? "loaded" : revisions.base().revision);
    EXPECT_EQ(weights.facts().updates > 0, !revisions.base().revision.empty());
  }
};

// Of those that the worker makes, what Asio makes at the end.
constexpr std::int64_t kAfterwards = 4;

TEST_F(UpdateFaults, OnTheWayLeaveTheOldWeightsLive) {
  load_dora();
  const auto serve = [&] {  // what a request gets
    auto model = adapters.apply(std::make_shared<const ServedModel>(), std::vector<AdapterChoice>{{.name = "dora"}});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->adapter.revision.starts_with(revisions.base().revision), true);
    EXPECT_TRUE(adapters.current((*model)->adapter));
  };
  std::int64_t count = 0;
  on_worker([] { allocations_left = kAllAllocations; });
  ASSERT_TRUE(run(weights.update(newer(), UpdateMode::kKeep)).value());
  on_worker([&] { count = kAllAllocations - std::exchange(allocations_left, kAllAllocations); });
  ASSERT_GT(count, 50);
  for (std::int64_t spared = 0; spared < count - kAfterwards; ++spared) {
    const State before = state();
    on_worker([spared] { allocations_left = spared; });
    const auto outcome = run(weights.update(newer(), UpdateMode::kFinish));
    bool failed = false;
    on_worker([&] { failed = std::exchange(allocations_left, kAllAllocations) < 0; });
    ASSERT_TRUE(failed || (outcome && *outcome)) << spared;
    EXPECT_TRUE((outcome && *outcome) || state() == before) << spared;
    expect_whole();
    serve();
  }
  EXPECT_TRUE(run(weights.update(newer(), UpdateMode::kAbort)).value());
}

TEST_F(UpdateFaults, OfTheLoopLeaveOneRevisionOrTheOther) {
  load_dora();
  bool failed = true;
  std::int64_t spared = 0;
  for (; failed; ++spared) {
    const State before = state();
    WeightSource source = newer();
    auto updating = weights.update(std::move(source), UpdateMode::kKeep);
    allocations_left = spared;
    std::optional<Result<WeightFacts>> outcome;
    try {
      outcome = run(std::move(updating));
    } catch (const std::bad_alloc&) {
    }
    failed = std::exchange(allocations_left, kAllAllocations) < 0;
    loop.restart();
    loop.run();
    expect_whole();
    EXPECT_TRUE(weights.facts().updates == before.updates + 1 || state() == before) << spared;
    EXPECT_FALSE(outcome && *outcome && state() == before) << spared;
  }
  EXPECT_GT(spared, 10);
  EXPECT_TRUE(run(weights.update(newer(), UpdateMode::kFinish)).value());
}

// Where the worker, and then where the loop has no memory. What is loaded is one of the two, and requests get that.
TEST_F(UpdateFaults, OfAnAdapterLeaveOneRevisionOrTheOther) {
  load_dora();
  std::string paths[] = {folder / "dora", write_dora("other")};
  const auto expect_whole_adapter =
      [&](const std::string& before, const std::optional<Result<AdapterFacts>>& outcome, std::int64_t spared) {
    const std::vector<AdapterFacts> all = adapters.list();
    ASSERT_EQ(all.size(), 1U);
    const std::string& revision = all.front().revision;
    EXPECT_TRUE(outcome && *outcome ? revision == (*outcome)->revision && revision != before : true) << spared;
    const auto model = adapters.apply(std::make_shared<const ServedModel>(), std::vector<AdapterChoice>{{.name = "dora"}});
    ASSERT_TRUE(model) << spared;
    EXPECT_EQ((*model)->adapter.revision, revision) << spared;
    EXPECT_TRUE(adapters.current((*model)->adapter)) << spared;
  };
  // Another than the one that is there, whether or not the last one was taken.
  const auto begin = [&] {
    if (adapters.list().front().path == paths[1]) std::swap(paths[0], paths[1]);
    return adapters.load("dora", {.path = paths[1], .tensors = {}, .checksum = {}}, UpdateMode::kKeep);
  };
  std::int64_t count = 0;
  on_worker([] { allocations_left = kAllAllocations; });
  ASSERT_TRUE(run(begin()).value());
  on_worker([&] { count = kAllAllocations - std::exchange(allocations_left, kAllAllocations); });
  ASSERT_GT(count, 50);
  for (std::int64_t spared = 0; spared < count - kAfterwards; ++spared) {
    const std::string before = adapters.list().front().revision;
    on_worker([spared] { allocations_left = spared; });
    const auto outcome = run(begin());
    on_worker([] { allocations_left = kAllAllocations; });
    EXPECT_TRUE((outcome && *outcome) || adapters.list().front().revision == before) << spared;
    expect_whole_adapter(before, outcome, spared);
  }
  bool failed = true;
  std::int64_t spared = 0;
  for (; failed; ++spared) {
    const std::string before = adapters.list().front().revision;
    auto updating = begin();
    std::optional<Result<AdapterFacts>> outcome;
    allocations_left = spared;
    try {
      outcome = run(std::move(updating));
    } catch (const std::bad_alloc&) {
    }
    failed = std::exchange(allocations_left, kAllAllocations) < 0;
    loop.restart();
    loop.run();
    expect_whole_adapter(before, outcome, spared);
  }
  EXPECT_GT(spared, 5);
}

}  // namespace
}  // namespace braid::app
