// Where records of blocks lie below RAM: on disk (BlockStore), in a Redis that servers share (RedisStore), or in both (LayeredStore).
#pragma once

#include "braid/engine_stats.h"
#include "store/buffer_pool.h"
#include "store/options.h"
#include "store/record.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::store {

// The sequence that a read is held against. Shared by all its reads.
struct Prefix {
  std::string adapter;
  std::string salt;
  std::vector<std::int32_t> tokens;
  std::vector<MediaSpan> media;

  Prefix() = default;
  explicit Prefix(const cache::SequenceView& of)
      : adapter(of.scope.adapter), salt(of.scope.salt), tokens(of.tokens.begin(), of.tokens.end()),
        media(of.media.begin(), of.media.end()) {}
  cache::SequenceView view() const { return {{adapter, salt}, tokens, media}; }
};

// A block whose record has been read and found right.
struct ReadBlock {
  Buffer buffer;
  std::span<std::byte> payload;  // in the buffer
};

// A record about to be written: fill `payload`, then commit() it; dropping it instead does no harm.
struct PendingRecord {
  RecordHeader header;
  Buffer buffer;
  std::span<std::byte> payload;
};

// In a buffer of the pool; nullopt when none is free, or the record does not fit.
std::optional<PendingRecord> compose_in(BufferPool& buffers, const cache::PrefixKey& key, const Origin& origin, std::size_t payload_bytes,
                                        std::uint64_t written_at);

// For the records of one model.
std::size_t most_record_bytes(const StoreOptions& options);
BufferPool record_buffers(const StoreOptions& options);

// Loop only, but for the destructor. Nothing here waits, and whatever goes wrong ends in a miss.
class RecordStore {
 public:
  // Runs a function on the loop, soon; called from other threads. What it drops unrun at the end does no harm.
  using Post = std::function<void(std::function<void()>)>;

  virtual ~RecordStore() = default;

  // Whether a record of this key can be read, as far as is known.
  virtual bool contains(const cache::PrefixKey& key) const = 0;
  // Whether one is worth writing: something here has none.
  virtual bool lacks(const cache::PrefixKey& key) const { return !contains(key); }

  // Where only others know, contains() tells what they have said lately. Whether they need not be asked:
  virtual bool knows(const cache::PrefixKey& /*key*/) const { return true; }
  // Asks. `done` is called on the loop within the store's time budget, and then all the keys are known for a while.
  virtual void look_up(std::vector<cache::PrefixKey> /*keys*/, std::function<void()> done) { done(); }

  // nullopt when there is nothing to write to or with; that is counted. `lacks(key)`.
  virtual std::optional<PendingRecord> begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) = 0;
  virtual void commit(PendingRecord record) = 0;
  // Called on the loop whenever a committed record has been written or given up, so that its buffer is free.
  virtual void on_written(std::function<void()> hook) = 0;

  // Reads the block that holds the last of the first `tokens` tokens of `prefix`. Calls `done` on the loop: with the block, or with
  // nullopt when it could not be read or was not right. False, and no call, when the key is unknown or no buffer is free.
  virtual bool read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
                    std::function<void(std::optional<ReadBlock>)> done) = 0;

  // To be called from time to time.
  virtual void tend() = 0;
  virtual std::size_t free_buffers() const = 0;
  // Nothing is being read, written or asked.
  virtual bool idle() const = 0;
  virtual void fill(EngineStats& stats) const = 0;
};

}  // namespace braid::store
