// Plain figures of the engine, copied out for /metrics and /readyz. Counters only grow.
#pragma once

#include "braid/speculation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace braid {

// How often durations fell between the bounds, and their sum. Bounds double from 0.25 ms to about 33 s, which also holds a queue.
struct DurationHistogram {
  static constexpr std::size_t kBounds = 18;
  static constexpr double bound(std::size_t bucket) { return 0.25e-3 * static_cast<double>(std::uint64_t{1} << bucket); }  // seconds

  std::array<std::uint64_t, kBounds + 1> counts{};  // not cumulative; the last one is above every bound
  double sum = 0.0;                                 // seconds

  void observe(double seconds) {
    std::size_t bucket = 0;
    while (bucket < kBounds && seconds > bound(bucket)) ++bucket;
    ++counts[bucket];
    sum += seconds;
  }
};

// How often numbers of tokens fell between the bounds, and their sum.
struct TokenHistogram {
  static constexpr std::array<double, 13> kBounds = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // not cumulative; the last one is above every bound
  std::uint64_t sum = 0;

  void observe(std::uint64_t tokens) {
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && static_cast<double>(tokens) > kBounds[bucket]) ++bucket;
    ++counts[bucket];
    sum += tokens;
  }
};

// The prefix cache's disk tier. Sizes are of now, the rest only grows.
struct DiskCacheStats {
  std::uint64_t records = 0;  // blocks that can be found
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;  // files
  std::uint64_t reads = 0;     // blocks; the errors are not among them
  std::uint64_t read_bytes = 0;
  std::uint64_t read_errors = 0;
  double read_seconds = 0.0;  // from request to completion, summed over blocks
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t write_errors = 0;
  std::uint64_t writes_dropped = 0;  // for want of buffers, or while writing is paused or another process's
  double write_seconds = 0.0;
  std::uint64_t pruned = 0;  // blocks that were too old, or had no room
};

// The part of the prefix cache that servers share in a Redis. Those that are of now come first, the rest only grows.
struct RedisCacheStats {
  bool is_up = true;           // false: it is left alone for a while after a failure
  std::uint64_t known = 0;     // keys of which it has said lately whether it has them
  std::uint64_t failures = 0;  // times that it was unreachable, late, or talked nonsense
  std::uint64_t lookups = 0;   // questions which blocks there are
  std::uint64_t lookup_errors = 0;
  double lookup_seconds = 0.0;
  std::uint64_t reads = 0;  // blocks; neither misses nor errors are among them
  std::uint64_t read_bytes = 0;
  std::uint64_t read_misses = 0;  // that were there a moment ago
  std::uint64_t read_errors = 0;
  double read_seconds = 0.0;  // from request to completion, summed over blocks
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t writes_known = 0;  // blocks that another server had written
  std::uint64_t write_errors = 0;
  std::uint64_t writes_dropped = 0;  // for want of buffers, or while nothing is written
  double write_seconds = 0.0;
};

// What became of images, where the model sees.
struct ImageStats {
  std::uint64_t encoded = 0;    // images computed
  std::uint64_t found = 0;      // what became of them before was kept
  double encode_seconds = 0.0;  // strand time of those that were computed, and of those that were left
  std::uint32_t waiting = 0;    // images, the one that is computed among them
  std::uint64_t kept_bytes = 0;
};

struct EngineStats {
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;  // prefilled, recomputed ones included
  std::uint64_t generated_tokens = 0;
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;  // answered with kOverloaded
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t retried_steps = 0;         // threw, and were computed again without the rows under suspicion
  std::uint64_t failed_rows = 0;           // sequences that ended because a step threw
  std::uint64_t stalls_total = 0;          // sequences that left the batch because their reader was behind
  std::uint64_t parks_total = 0;           // of these, those that gave their blocks up because he was so for too long
  std::uint64_t slow_readers_dropped = 0;  // and those that were ended
  double prefill_seconds = 0.0;            // strand time spent in steps, split by row share
  double decode_seconds = 0.0;
  double prefill_tokens_per_second = 0.0;  // as measured lately; 0: not yet
  double decode_tokens_per_second = 0.0;
  double running_step_seconds = 0.0;  // how long ago the step that runs began; 0: none runs
  std::uint32_t waiting = 0;          // in the queue
  std::uint32_t waiting_better = 0;   // of these, by priority: below 0
  std::uint32_t waiting_normal = 0;   // 0
  std::uint32_t waiting_worse = 0;    // above 0
  std::uint32_t preempted = 0;        // of these, those that have run before
  std::uint32_t most_running = 0;     // that may run at once
  std::uint32_t prefilling = 0;
  std::uint32_t decoding = 0;
  std::uint32_t stalled = 0;       // their readers are behind; they keep their blocks while nobody needs them more
  std::uint32_t parked = 0;        // the same, without blocks
  TokenHistogram step_tokens;      // of prompts and answers, that a step computed
  std::uint32_t block_tokens = 0;  // positions of a block
  bool caches_prefixes = false;    // blocks are found again
  std::uint32_t blocks_total = 0;
  std::uint32_t blocks_free = 0;          // nobody holds them; cached ones included
  std::uint32_t blocks_cached = 0;        // of the free ones, those whose contents can still be found
  std::uint32_t states_cached = 0;        // checkpoints of recurrent states that sequences may begin with
  std::uint32_t state_blocks_cached = 0;  // that these take, held by nobody but the cache or not
  std::uint32_t state_blocks_most = 0;    // that they may take
  std::uint64_t states_dropped = 0;       // those used longest ago, so that others found room in that
  static constexpr std::size_t kMostGroups = 16;
  std::uint32_t groups = 0;                               // of layers, each with blocks of its own
  std::array<std::uint32_t, kMostGroups> group_blocks{};  // that each of them holds
  std::uint64_t kv_unused_slots = 0;                      // positions of blocks that somebody holds and that nothing was written to yet
  double kv_fragmentation = 0.0;     // share of the held blocks' bytes that hold nothing: those positions, and what a group leaves over
  DurationHistogram queue_wait;      // from submission to a place in the batch
  DurationHistogram cancel_to_free;  // from the loss of interest in a sequence to the release of its slot and blocks
  std::array<std::uint64_t, 4> cancel_to_free_steps{};  // how many came back meanwhile: 0, 1, 2 or more
  std::uint64_t cache_hit_tokens = 0;                   // of admitted sequences, found in the prefix cache
  std::uint64_t cache_disk_hit_tokens = 0;              // of these, those that came from disk
  std::uint64_t cache_miss_tokens = 0;                  // of admitted sequences, to be computed; 0 without a prefix cache
  std::uint64_t cache_evictions = 0;                    // cached blocks given away because no empty one was left
  std::uint64_t cache_verified_blocks = 0;              // compared with what was computed, by --kv-verify
  DraftStats drafts;                                    // empty where nothing is guessed
  std::optional<DiskCacheStats> disk;                   // nullopt without a disk tier
  std::optional<RedisCacheStats> redis;                 // nullopt without --kv-redis
  std::optional<ImageStats> images;                     // nullopt for a model that reads text alone
};

}  // namespace braid
