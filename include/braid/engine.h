// The one way into generation. Everything here belongs to the loop's thread.
#pragma once

#include <braid/request.h>
#include <braid/result.h>
#include <braid/token_event.h>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

// The consumer's side of one running request. Destroying it cancels the request in every phase.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // The next event, or nullopt when wake() was called meanwhile. After a Finish it must not be called again.
  virtual boost::asio::awaitable<std::optional<TokenEvent>> next() = 0;

  // What has arrived already; lets a session put several tokens into one write when the socket is behind.
  virtual std::optional<TokenEvent> try_next() = 0;

  // Makes a pending or the next next() return nullopt: a session's keep-alive timer and disconnect watcher use it, so that
  // one coroutine does all writing.
  virtual void wake() = 0;

  // What destroying it does, at once and also while a next() is pending, which then returns nullopt. No event follows.
  virtual void cancel() = 0;

  // As cancel(), because the consumer has its whole answer (a stop string): it counts as finished, not as cancelled.
  virtual void complete() = 0;

  // Prompt tokens that were found in the prefix cache: what Usage says in the end. 0 until the request starts.
  virtual std::int32_t cached_tokens() const = 0;
};

// Move-only owner of a TokenSource.
using Ticket = std::unique_ptr<TokenSource>;

// Plain figures, copied out for /metrics and /readyz. Counters only grow.
// The prefix cache's disk tier. Sizes are of now, the rest only grows.
struct DiskCacheStats {
  std::uint64_t records = 0;            // blocks that can be found
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;           // files
  std::uint64_t reads = 0;              // blocks; the errors are not among them
  std::uint64_t read_bytes = 0;
  std::uint64_t read_errors = 0;
  double read_seconds = 0.0;            // from request to completion, summed over blocks
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t write_errors = 0;
  std::uint64_t writes_dropped = 0;     // for want of host buffers, or after an error
  double write_seconds = 0.0;
  std::uint64_t pruned = 0;             // blocks that were too old, or had no room
};

struct EngineStats {
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;      // prefilled, recomputed ones included
  std::uint64_t generated_tokens = 0;
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;            // answered with kOverloaded
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t preemptions = 0;
  double prefill_seconds = 0.0;         // strand time spent in steps, split by row share
  double decode_seconds = 0.0;
  std::uint32_t waiting = 0;
  std::uint32_t prefilling = 0;
  std::uint32_t decoding = 0;
  std::uint32_t blocks_total = 0;
  std::uint32_t blocks_free = 0;        // nobody holds them; cached ones included
  std::uint32_t blocks_cached = 0;      // of the free ones, those whose contents can still be found
  std::uint64_t cache_hit_tokens = 0;   // of admitted sequences, found in the prefix cache
  std::uint64_t cache_disk_hit_tokens = 0;  // of these, those that came from disk
  std::uint64_t cache_miss_tokens = 0;  // of admitted sequences, to be computed; 0 without a prefix cache
  std::uint64_t cache_evictions = 0;    // cached blocks given away because no empty one was left
  std::uint64_t cache_verified_blocks = 0;  // compared with what was computed, by --kv-verify
  std::optional<DiskCacheStats> disk;   // nullopt without a disk tier
};

// One sequence that waits or runs, for /slots.
struct SequenceSnapshot {
  std::string id;
  std::string phase;                    // waiting, prefill, decode, stalled, preempted
  std::int32_t priority = 0;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t generated_tokens = 0;
  std::int32_t max_tokens = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Admits the request or refuses at once: kOverloaded when the waiting queue is full, kContextLength or kInvalidArgument when
  // it can never run, kDraining during shutdown.
  virtual Result<Ticket> submit(Request request) = 0;

  virtual EngineStats stats() const = 0;

  // Ends the request with this Request::id by Finish{kCancelled}. False when there is none.
  virtual bool cancel(std::string_view id) = 0;

  // Running ones first, each kind oldest first, at most `limit`.
  virtual std::vector<SequenceSnapshot> sequences(std::size_t limit) const = 0;
};

}  // namespace braid
