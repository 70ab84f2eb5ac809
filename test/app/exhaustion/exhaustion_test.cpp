// Newer weights where each allocation on the way fails once: the old ones stay live, or the newer ones are whole. A program of its own: it
// replaces operator new. Asio's own allocations do not fail here: they would end the process (app/exhausted.h).
#include "app/updated_model.h"
#include "app/updated_network.h"
#include "support/operator_delete.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
// What becomes of it; nothing: an exception.
template <class Value>
std::optional<Result<Value>> run(asio::io_context& loop, asio::awaitable<Result<Value>> work) {
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

void on_worker(asio::thread_pool& workers, const std::function<void()>& action) {
  std::promise<void> done;
  asio::post(workers, [&] {
    action();
    done.set_value();
  });
  done.get_future().wait();
}

// Of those that the worker makes, what Asio makes at the end.
constexpr std::int64_t kAfterwards = 4;

struct UpdateFaults : testing::Test, updated::UpdatedModel {
  UpdateFaults() : UpdatedModel({.end = [](const auto&, const Error&) {}, .change = [](const auto&) {}}) {}

  template <class Value>
  std::optional<Result<Value>> run(asio::awaitable<Result<Value>> work) {
    return app::run(loop, std::move(work));
  }
  void on_worker(const std::function<void()>& action) { app::on_worker(workers, action); }

  void load_dora() {
    const std::string path = write_adapter("dora", true);
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
  ASSERT_TRUE(run(weights.update(newer_weights(), UpdateMode::kKeep)).value());
  on_worker([&] { count = kAllAllocations - std::exchange(allocations_left, kAllAllocations); });
  ASSERT_GT(count, 50);
  for (std::int64_t spared = 0; spared < count - kAfterwards; ++spared) {
    const State before = state();
    on_worker([spared] { allocations_left = spared; });
    const auto outcome = run(weights.update(newer_weights(), UpdateMode::kFinish));
    bool failed = false;
    on_worker([&] { failed = std::exchange(allocations_left, kAllAllocations) < 0; });
    ASSERT_TRUE(failed || (outcome && *outcome)) << spared;
    EXPECT_TRUE((outcome && *outcome) || state() == before) << spared;
    expect_whole();
    serve();
  }
  EXPECT_TRUE(run(weights.update(newer_weights(), UpdateMode::kAbort)).value());
}

TEST_F(UpdateFaults, OfTheLoopLeaveOneRevisionOrTheOther) {
  load_dora();
  bool failed = true;
  std::int64_t spared = 0;
  for (; failed; ++spared) {
    const State before = state();
    WeightSource source = newer_weights();
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
  EXPECT_TRUE(run(weights.update(newer_weights(), UpdateMode::kFinish)).value());
}

// Where the worker, and then where the loop has no memory. What is loaded is one of the two, and requests get that.
TEST_F(UpdateFaults, OfAnAdapterLeaveOneRevisionOrTheOther) {
  load_dora();
  std::string paths[] = {folder / "dora", write_adapter("other", true)};
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

// Of a small network.
struct NetworkUpdateFaults : testing::Test, updated::UpdatedNetwork {
  std::map<std::string, std::vector<float>> known;  // what each revision answers
  std::map<std::string, std::string> digests;       // of the tensor in which they differ

  // Two revisions, of which the second is live.
  void SetUp() override {
    for (const float value : {3.0F, 4.0F}) {
      const auto updated = run(loop, weights->update(source(value), UpdateMode::kFinish));
      ASSERT_TRUE(updated && *updated);
      known[served.revision] = answer();
      digests[served.revision] = digest();
    }
    ASSERT_EQ(known.size(), 2U);
    ASSERT_NE(known.begin()->second, known.rbegin()->second);
  }

  std::string digest() {
    const auto all = run(loop, weights->digests()).value().value();
    return std::ranges::find(all, "value.weight", &TensorDigest::name)->sha256;
  }
  // To the one that is not live.
  asio::awaitable<Result<WeightFacts>> update(UpdateMode mode) {
    WeightSource newer = source(3.0F);
    if (newer_revision(base, first, newer).value().digest == served.revision) newer = source(4.0F);
    return weights->update(std::move(newer), mode);
  }
  // All parts tell the same revision, and it answers.
  void expect_whole() {
    EXPECT_EQ(weights->facts().revision, served.revision);
    EXPECT_EQ(answer(), known.at(served.revision));
    EXPECT_EQ(digest(), digests.at(served.revision));
  }
};

TEST_F(NetworkUpdateFaults, OnTheWayLeaveTheOldWeightsLive) {
  std::int64_t count = 0;
  on_worker(workers, [] { allocations_left = kAllAllocations; });
  ASSERT_TRUE(run(loop, update(UpdateMode::kFinish)).value());
  on_worker(workers, [&] { count = kAllAllocations - std::exchange(allocations_left, kAllAllocations); });
  ASSERT_GT(count, 50);
  for (std::int64_t spared = 0; spared < count - kAfterwards; ++spared) {
    const std::string before = served.revision;
    const std::uint64_t updates = weights->facts().updates;
    auto updating = update(UpdateMode::kFinish);
    on_worker(workers, [spared] { allocations_left = spared; });
    const auto outcome = run(loop, std::move(updating));
    bool failed = false;
    on_worker(workers, [&] { failed = std::exchange(allocations_left, kAllAllocations) < 0; });
    const bool is_updated = outcome && *outcome;
    ASSERT_TRUE(failed || is_updated) << spared;
    EXPECT_EQ(served.revision != before, is_updated) << spared;
    EXPECT_EQ(weights->facts().updates, updates + (is_updated ? 1 : 0)) << spared;
    expect_whole();
  }
}

TEST_F(NetworkUpdateFaults, OfTheLoopLeaveOneRevisionOrTheOther) {
  for (const UpdateMode mode : {UpdateMode::kFinish, UpdateMode::kKeep, UpdateMode::kAbort}) {
    bool failed = true;
    std::int64_t spared = 0;
    for (; failed; ++spared) {
      const std::string before = served.revision;
      auto updating = update(mode);
      std::optional<Result<WeightFacts>> outcome;
      allocations_left = spared;
      try {
        outcome = run(loop, std::move(updating));
      } catch (const std::bad_alloc&) {
      }
      failed = std::exchange(allocations_left, kAllAllocations) < 0;
      loop.restart();
      loop.run();
      EXPECT_FALSE(outcome && *outcome && served.revision == before) << spared;
      EXPECT_FALSE(outcome && !*outcome && served.revision != before) << spared;
      expect_whole();
    }
    EXPECT_GT(spared, 5);
  }
}

// Of those that wait each is told, or ends on the revision that it began with; who asks afterwards gets the newer one.
TEST_F(NetworkUpdateFaults, WhereThoseWhoWaitAreToldLeaveEachOnOneRevision) {
  for (const UpdateMode mode : {UpdateMode::kKeep, UpdateMode::kAbort}) {
    bool failed = true;
    std::int64_t spared = 0;
    for (; failed; ++spared) {
      const std::string older = served.revision;
      const float value = newer_revision(base, first, source(3.0F)).value().digest == older ? 4.0F : 3.0F;
      const NetworkRevision newer = newer_revision(base, first, source(value)).value();
      std::vector<std::unique_ptr<PendingPrediction>> tickets;
      for (int i = 0; i < 4; ++i) tickets.push_back(ask());
      allocations_left = spared;
      try {
        predictor.replace(newer.network, newer.digest, mode);
      } catch (const std::bad_alloc&) {
      }
      failed = std::exchange(allocations_left, kAllAllocations) < 0;
      served.revision = newer.digest;
      EXPECT_EQ(answer(), known.at(newer.digest)) << spared;
      int told = 0;
      for (const auto& ticket : tickets) {
        auto outcome = ticket->try_take();
        ASSERT_TRUE(outcome) << spared;
        const bool is_cancelled = !*outcome;
        told += is_cancelled || ticket->newer_revision() ? 1 : 0;
        if (is_cancelled) {
          EXPECT_TRUE(mode == UpdateMode::kAbort && outcome->error().code == ErrorCode::kCancelled) << spared;
          continue;
        }
        std::vector<float> numbers = (**outcome)[0].floats;
        numbers.insert(numbers.end(), (**outcome)[1].floats.begin(), (**outcome)[1].floats.end());
        EXPECT_EQ(numbers, known.at(ticket->newer_revision().value_or(older))) << spared;
      }
      EXPECT_TRUE(failed || told >= 3) << spared;
    }
    EXPECT_GT(spared, 3);
  }
}

}  // namespace
}  // namespace braid::app
