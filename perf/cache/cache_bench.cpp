// What a prompt's lookup and a block cost the loop.
#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace braid::cache;  // NOLINT: a program, not a header

constexpr std::int32_t kBlockTokens = 16;
constexpr std::int32_t kCachedBlocks = 100'000;
constexpr std::size_t kPrompts = 10'000;
constexpr std::int32_t kPromptTokens = 1'000;
constexpr std::int32_t kFullBlocks = kPromptTokens / kBlockTokens;
constexpr std::int32_t kTailTokens = kPromptTokens % kBlockTokens;
constexpr std::int32_t kPaths = kCachedBlocks / (kFullBlocks + 1);

using Tokens = std::vector<std::int32_t>;

// Processor time of this thread, in nanoseconds: other processes do not count.
std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// 100,000 cached blocks: paths of 62 full blocks that have nothing in common, each ending in a block of 8 tokens. They were
// computed side by side, so the blocks of a path lie far apart. Each prompt follows one of the paths through all its full blocks
// and ends differently.
class FullCache {
 public:
  FullCache() : pool_(kCachedBlocks), index_(pool_, kBlockTokens) {
    std::vector<Tokens> paths(kPaths, Tokens(kPromptTokens));
    for (Tokens& path : paths)
      for (std::int32_t& token : path) token = static_cast<std::int32_t>(random_() % 50'000);
    fill(paths);
    for (std::size_t i = 0; i < kPrompts; ++i) {
      Tokens& prompt = prompts_.emplace_back(paths[random_() % paths.size()]);
      for (std::int32_t k = 1; k <= kTailTokens / 2; ++k)
        prompt[prompt.size() - static_cast<std::size_t>(k)] = static_cast<std::int32_t>(random_());
    }
  }

  const std::vector<Tokens>& prompts() const { return prompts_; }

  std::vector<std::size_t> random_order() {
    std::vector<std::size_t> order(kPrompts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random_);
    return order;
  }

  // As an admission does it: full blocks, then what the first other block begins with. Returns how many tokens were found.
  std::int32_t look_up(const Tokens& prompt) {
    path_.clear();
    const SequenceView sequence{{}, prompt, {}};
    index_.match(sequence.first(prompt.size() - 1), path_);
    const BlockId last = path_.empty() ? PrefixIndex::kNoParent : path_.back();
    return static_cast<std::int32_t>(path_.size()) * kBlockTokens +
           index_.common_beginning(last, sequence, path_.size() * kBlockTokens).count;
  }

 private:
  void fill(const std::vector<Tokens>& paths) {
    std::vector<std::unique_ptr<BlockTable>> tables;
    for (std::int32_t i = 0; i < kPaths; ++i) tables.push_back(std::make_unique<BlockTable>(pool_));
    for (std::int32_t block = 0; block <= kFullBlocks; ++block) {
      for (std::size_t i = 0; i < paths.size(); ++i) {
        BlockTable& table = *tables[i];
        table.grow_to(block + 1);
        const BlockId parent = block > 0 ? table[block - 1] : PrefixIndex::kNoParent;
        const SequenceView sequence{{}, paths[i], {}};
        const auto begin = static_cast<std::size_t>(block) * kBlockTokens;
        if (block < kFullBlocks) {
          index_.insert(parent, sequence, begin, table[block]);
        } else {
          index_.insert_partial(parent, sequence, begin, table[block]);
        }
      }
    }
  }

  std::mt19937 random_{1};
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<Tokens> prompts_;
  std::vector<BlockId> path_;
};

FullCache& full_cache() {
  static FullCache cache;
  return cache;
}

void report(benchmark::State& state, std::vector<std::int64_t>& times) {
  std::ranges::sort(times);
  state.counters["median_us"] = static_cast<double>(times[times.size() / 2]) * 1e-3;
  state.counters["p99_us"] = static_cast<double>(times[times.size() * 99 / 100]) * 1e-3;
}

// Each iteration looks all prompts up once.
void look_up_in_random_order(benchmark::State& state) {
  FullCache& cache = full_cache();
  std::vector<std::int64_t> times;
  for ([[maybe_unused]] auto _ : state) {
    for (const std::size_t at : cache.random_order()) {
      const std::int64_t begin = now();
      const std::int32_t found = cache.look_up(cache.prompts()[at]);
      times.push_back(now() - begin);
      if (found < kPromptTokens - kTailTokens) return state.SkipWithError("a cached prompt was not found");
    }
  }
  report(state, times);
}
BENCHMARK(look_up_in_random_order)->Unit(benchmark::kMillisecond);

// Prompts that have just been looked up.
void look_up_again(benchmark::State& state) {
  FullCache& cache = full_cache();
  std::vector<std::int64_t> times;
  for ([[maybe_unused]] auto _ : state) {
    for (const std::size_t at : cache.random_order()) {
      cache.look_up(cache.prompts()[at]);
      const std::int64_t begin = now();
      benchmark::DoNotOptimize(cache.look_up(cache.prompts()[at]));
      times.push_back(now() - begin);
    }
  }
  report(state, times);
}
BENCHMARK(look_up_again)->Unit(benchmark::kMillisecond);

// What reading the clock adds to each of the above.
void read_clock(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(now());
}
BENCHMARK(read_clock);

// Nothing in the pool is cached. An item is one of both operations.
void allocate_and_free(benchmark::State& state) {
  constexpr std::size_t kAtOnce = 1024;
  BlockPool pool(kCachedBlocks);
  std::vector<BlockId> blocks(kAtOnce);
  for ([[maybe_unused]] auto _ : state) {
    for (BlockId& block : blocks) block = *pool.allocate();
    for (const BlockId block : blocks) pool.release(block);
  }
  state.SetItemsProcessed(state.iterations() * 2 * static_cast<std::int64_t>(kAtOnce));
}
BENCHMARK(allocate_and_free);

// All other blocks are cached, so that each allocation evicts one and makes the index forget it.
void evict_and_publish(benchmark::State& state) {
  constexpr std::int32_t kAtOnce = 64;
  BlockPool pool(kCachedBlocks);
  PrefixIndex index(pool, kBlockTokens);
  Tokens tokens(kBlockTokens);
  std::int32_t next = 0;
  const auto compute = [&] {
    BlockTable table(pool);
    table.grow_to(kAtOnce);
    for (std::int32_t i = 0; i < kAtOnce; ++i) {
      tokens[0] = next++;
      index.insert(i > 0 ? table[i - 1] : PrefixIndex::kNoParent, {{}, tokens, {}}, 0, table[i]);
    }
  };
  while (pool.evictions() == 0) compute();
  for ([[maybe_unused]] auto _ : state) compute();
  state.SetItemsProcessed(state.iterations() * kAtOnce);
}
BENCHMARK(evict_and_publish);

}  // namespace
