// The disk tier of the KV cache: blocks by key, in append-only segment files that any crash leaves readable.
//
// A record is one block and vouches for itself (record.h), so no order of writes needs to be kept and nothing is ever synced: what a
// crash or a power cut loses, tears or mixes up fails its digest and is a miss. Each process appends to segments of its own; the
// oldest segment goes when there is no room, be it by the limit or on the disk, or all its records are too old. Whatever the disk does
// wrong ends in a miss and a log line.
#pragma once

#include "braid/engine_stats.h"
#include "braid/result.h"
#include "store/directory.h"
#include "store/io.h"
#include "store/options.h"
#include "store/quiet_log.h"
#include "store/record_store.h"
#include "store/segment_index.h"
#include "store/worker.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace braid::store {

// Loop only, but for open() and the destructor. The threads it owns touch buffers and files, never the metadata.
class BlockStore final : public RecordStore {
 public:
  using PendingRecord = store::PendingRecord;

  // Takes up to scan_patience; any thread. kIo when the folder cannot be used, kInvalidArgument when the limit is too low.
  // `predecessors_lock`, if it is that of the folder, comes from a process that still writes there: this store finds nothing and writes
  // nothing until take_over().
  static Result<std::unique_ptr<BlockStore>> open(StoreOptions options, std::unique_ptr<Io> io, Post post,
                                                  SharedFile predecessors_lock = nullptr);
  ~BlockStore() override;

  bool awaits_predecessor() const { return awaits_predecessor_; }
  // The predecessor's store is closed: looks through what is there, meanwhile, and writes. Once.
  void take_over();
  // The folder's, to be passed on to a successor; null while it is still a predecessor's.
  SharedFile lock() const { return awaits_predecessor_ ? nullptr : directory_.lock(); }

  bool contains(const cache::PrefixKey& key) const override;
  std::optional<PendingRecord> begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) override;
  void commit(PendingRecord record) override;
  void on_written(std::function<void()> hook) override { on_written_ = std::move(hook); }
  // Gets each committed record when it has been written or given up.
  void pass_on(std::function<void(PendingRecord)> to) { pass_on_ = std::move(to); }
  bool can_write() const { return !awaits_predecessor_ && !pauses(); }
  bool read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
            std::function<void(std::optional<ReadBlock>)> done) override;

  // Drops what is too old and what exceeds the limit, and has the files of what has been dropped deleted, one after the other. True when
  // the deletion of some has not begun.
  bool prune();
  // The same, after looking whether others have filled the disk since the last segment was begun.
  void tend() override;

  const BufferPool& buffers() const { return buffers_; }
  std::size_t free_buffers() const override { return buffers_.free(); }
  bool idle() const override { return reads_.empty() && writes_.empty() && !writing_; }
  DiskCacheStats stats() const;
  void fill(EngineStats& stats) const override { stats.disk = this->stats(); }
  const char* io_name() const { return io_->name(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Read;
  struct Mailbox;
  struct Writing {
    PendingRecord record;
    Clock::time_point begun;
  };

  BlockStore(StoreOptions options, Directory directory, std::unique_ptr<Io> io, Post post);
  void post(std::function<void(BlockStore&)> call) const;

  Result<void> scan();
  void scan_next();
  void on_listed(const Result<std::vector<std::uint32_t>>& numbers);
  SharedFile open_segment(std::uint32_t number) const;
  void add_scanned(std::uint32_t number, SharedFile file, const Scan& scan);
  void on_read(std::uint64_t id, int error, std::span<std::byte> payload);
  void write_next();
  void begin_segment();
  void look_at_disk(std::function<void(BlockStore&)> then);
  void bound_limit(const DiskSpace& space, std::uint64_t own);
  void make_room();
  void let_go(Writing writing);
  void on_segment(std::uint32_t number, SharedFile file, int error);
  void append();
  void finish_write(int error);
  void fail_writing(int error);
  std::uint64_t segment_bytes(std::uint64_t limit) const;
  bool pauses() const;
  void forget_removed();
  void drop_surplus();
  void drop(const Segment& segment);
  void delete_one();

  const StoreOptions options_;
  const Directory directory_;
  const Post post_;
  std::function<void()> on_written_;
  std::function<void(PendingRecord)> pass_on_;
  BufferPool buffers_;
  SegmentIndex index_;
  DiskCacheStats counters_;
  QuietLog log_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Read>> reads_;  // under way
  std::uint64_t next_read_ = 0;
  std::deque<Writing> writes_;       // committed, not begun
  std::optional<Writing> writing_;   // under way: its record, or the segment it waits for
  bool awaits_predecessor_ = false;  // the folder is still another process's
  Segment* current_ = nullptr;       // appended to; the index owns it
  std::uint32_t next_segment_ = 1;
  std::uint64_t limit_bytes_;             // as wanted, or what the disk has had room for when it was looked at
  std::uint64_t segment_bytes_;           // of the current one at most
  std::uint64_t write_failed_at_ = 0;     // Unix seconds; 0: never
  std::vector<std::uint32_t> unscanned_;  // numbers of segments that are still to be looked through
  std::vector<std::uint32_t> doomed_;     // numbers of dropped segments whose deletion has not begun
  std::shared_ptr<Mailbox> mailbox_;      // shared with calls that outlive the store in the loop's queue
  std::unique_ptr<Io> io_;                // last: their threads end before what they use
  Worker worker_;
};

}  // namespace braid::store
