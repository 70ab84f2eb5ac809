// Records in a Redis (or Valkey) that several servers share: what one has computed, the others find.
//
// A value is a record as it would lie on disk, and vouches for itself (record.h): whatever a Redis returns, it is right or a miss. Three
// threads with a connection each ask which keys there are, read and write, so that no answer waits for a transfer of another kind; the loop
// waits for none. Each command has a time budget. One that runs out, or a connection that fails, pauses everything for a while (RedisHealth).
#pragma once

#include "braid/result.h"
#include "store/bell.h"
#include "store/directory.h"
#include "store/options.h"
#include "store/quiet_log.h"
#include "store/record_store.h"
#include "store/redis/address.h"
#include "store/redis/health.h"
#include "store/redis/known_keys.h"
#include "store/redis/lane.h"
#include "store/redis/name_lookup.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace braid::store {

struct RedisOptions {
  RedisAddress address;
  std::chrono::milliseconds timeout{250};           // for an answer; a block may take ten times that to be written
  std::chrono::seconds ttl = std::chrono::days(7);  // after which a Redis forgets a block that nobody has written again
  std::string key_prefix = "braid:";
  std::string identity;                  // see Origin
  std::size_t payload_bytes = 0;         // of one block
  std::chrono::seconds pause{1};         // in which it is left alone after a first failure
  std::chrono::seconds write_pause{30};  // in which nothing is written after it has refused to take a block
  std::function<std::uint64_t()> clock = wall_clock;
  Resolver resolve = ask_system;  // what the address's host stands for
};

// Loop only, but for open() and the destructor.
class RedisStore final : public RecordStore {
 public:
  // Connects when there is something to ask. kIo: this process may have no more files open.
  static Result<std::unique_ptr<RedisStore>> open(RedisOptions options, BufferPool buffers, Post post);
  ~RedisStore() override;

  bool contains(const cache::PrefixKey& key) const override;
  bool lacks(const cache::PrefixKey& key) const override;
  bool knows(const cache::PrefixKey& key) const override;
  void look_up(std::vector<cache::PrefixKey> keys, std::function<void()> done) override;
  std::optional<PendingRecord> begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) override;
  void commit(PendingRecord record) override;
  void on_written(std::function<void()> hook) override { on_written_ = std::move(hook); }
  bool read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
            std::function<void(std::optional<ReadBlock>)> done) override;
  void tend() override {}
  std::size_t free_buffers() const override { return buffers_.free(); }
  bool idle() const override { return lookups_.empty() && reads_.empty() && writes_.empty(); }
  RedisCacheStats stats() const;
  void fill(EngineStats& stats) const override { stats.redis = this->stats(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Mailbox;
  struct Lookup {
    std::vector<cache::PrefixKey> keys;
    std::function<void()> done;
    Clock::time_point begun;
  };
  struct Read {
    cache::PrefixKey key;
    std::shared_ptr<const Prefix> prefix;
    std::size_t tokens = 0;
    Buffer buffer;
    std::function<void(std::optional<ReadBlock>)> done;
    Clock::time_point begun;
  };
  struct Writing {
    PendingRecord record;
    Clock::time_point begun;
  };
  // What has come of one on its lane's thread.
  struct LookedUp {
    Result<void> done;
    std::vector<bool> present;  // by key
  };
  struct ReadRecord {
    enum class Outcome { kFound, kMissing, kWrong };
    Result<void> done;
    Outcome outcome = Outcome::kMissing;
    std::size_t bytes = 0;         // of the record
    std::span<std::byte> payload;  // in the buffer
  };
  struct WrittenRecord {
    enum class Outcome { kWritten, kKnown, kRefused };
    Result<void> done;
    Outcome outcome = Outcome::kWritten;
    std::string refusal;
  };

  RedisStore(RedisOptions options, BufferPool buffers, Post post, Bell stop);
  void post(std::function<void(RedisStore&)> call) const;
  std::string name_of(const cache::PrefixKey& key) const;
  bool may_write() const { return Clock::now() >= write_again_ && !health_.is_down(); }
  // On the threads of the lanes.
  LookedUp ask(const Lookup& lookup);
  ReadRecord fetch(const Read& read);
  WrittenRecord put(const Writing& writing);
  // Then on the loop.
  void on_looked_up(std::uint64_t id, const LookedUp& answer);
  void on_read(std::uint64_t id, const ReadRecord& answer);
  void on_put(std::uint64_t id, const WrittenRecord& answer);
  void note_failure(const Error& error);

  const RedisOptions options_;
  const Post post_;
  std::function<void()> on_written_;
  BufferPool buffers_;
  KnownKeys known_;
  RedisHealth health_;
  RedisCacheStats counters_;
  QuietLog log_;
  Clock::time_point write_again_{};  // not before
  // Under way. The threads read what these hold, and write to their buffers.
  std::unordered_map<std::uint64_t, std::unique_ptr<Lookup>> lookups_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Read>> reads_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Writing>> writes_;
  std::uint64_t next_id_ = 0;
  std::shared_ptr<Mailbox> mailbox_;  // shared with calls that outlive the store in the loop's queue
  Bell stop_;                         // rings when this store is to end
  RedisLane lookup_lane_;             // last: their threads end before what they use
  RedisLane read_lane_;
  RedisLane write_lane_;
};

}  // namespace braid::store
