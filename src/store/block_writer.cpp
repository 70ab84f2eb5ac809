// The writing half of BlockStore: one record at a time, appended to the current segment; and what makes room.
#include "store/block_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <sys/stat.h>
#include <utility>

namespace braid::store {

namespace {

// Of the disk, for whoever else writes to it.
std::uint64_t left_to_others(const DiskSpace& space) { return std::min<std::uint64_t>(space.total / 20, std::uint64_t{1} << 30U); }

// Each is an open file. The limit makes 32 of them; the others are what crashes and restarts have left unfinished.
constexpr std::size_t kMostSegments = 128;

// A file that nobody can find any more still takes bytes, but they end with the process.
bool is_removed(int file) {
  struct stat status {};
  return ::fstat(file, &status) != 0 || status.st_nlink == 0;
}

}  // namespace

// A clock that has been set back ends it: it could be set back by years.
bool BlockStore::pauses() const {
  const std::uint64_t now = options_.clock();
  return now >= write_failed_at_ && now - write_failed_at_ < static_cast<std::uint64_t>(options_.write_pause.count());
}

std::optional<PendingRecord> BlockStore::begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) {
  std::optional<PendingRecord> record;
  if (can_write()) record = compose_in(buffers_, key, {options_.identity, sequence}, options_.payload_bytes, options_.clock());
  if (!record) ++counters_.writes_dropped;
  return record;
}

void BlockStore::commit(PendingRecord record) {
  writes_.push_back({std::move(record), Clock::now()});
  write_next();
}

void BlockStore::write_next() {
  if (writing_ || writes_.empty()) return;
  writing_ = std::move(writes_.front());
  writes_.pop_front();
  if (contains(writing_->record.header.key)) {  // written meanwhile, by an earlier one of the queue
    let_go(*std::exchange(writing_, std::nullopt));
    if (on_written_) on_written_();
    return write_next();
  }
  if (current_ != nullptr && current_->bytes + writing_->record.header.record_bytes() <= segment_bytes_) {
    append();
  } else {
    begin_segment();
  }
}

void BlockStore::begin_segment() {
  current_ = nullptr;
  look_at_disk([](BlockStore& store) { store.make_room(); });
}

// What the disk can hold is a limit, too. Files count as they lie there, since not all may have been looked through.
void BlockStore::look_at_disk(std::function<void(BlockStore&)> then) {
  worker_.submit([this, then = std::move(then)] {
    const std::optional<std::uint64_t> own = directory_.bytes();
    post([space = options_.space(directory_.path()), own, then](BlockStore& store) {
      if (own) store.bound_limit(space, *own);
      then(store);
    });
  });
}

void BlockStore::bound_limit(const DiskSpace& space, std::uint64_t own) {
  const bool was_bounded = limit_bytes_ < options_.limit_bytes;
  const std::uint64_t room = own + space.free;
  limit_bytes_ = std::min(options_.limit_bytes, room - std::min(room, left_to_others(space)));
  segment_bytes_ = segment_bytes(limit_bytes_);
  if (was_bounded || limit_bytes_ == options_.limit_bytes) return;
  log_.warn(fmt::format(
      "disk cache: the disk of {} has room for {} MB, not for the limit of {} MB: the oldest blocks make room for new ones, and "
      "{} MB are left to others",
      directory_.path(), limit_bytes_ / 1'000'000, options_.limit_bytes / 1'000'000, left_to_others(space) / 1'000'000));
}

// For a whole segment, so that the limit holds until the next one.
void BlockStore::make_room() {
  while (index_.oldest() != nullptr && index_.bytes() + segment_bytes_ > limit_bytes_) drop(*index_.oldest());
  drop_surplus();
  delete_one();
  if (segment_bytes_ > limit_bytes_) return fail_writing(ENOSPC);
  worker_.submit([this, number = next_segment_++] {
    int error = 0;
    SharedFile file = directory_.create_segment(number, error);
    post([number, file = std::move(file), error](BlockStore& store) { store.on_segment(number, file, error); });
  });
}

void BlockStore::on_segment(std::uint32_t number, SharedFile file, int error) {
  if (file == nullptr) return fail_writing(error);
  current_ = &index_.add_segment(number, std::move(file));
  append();
}

void BlockStore::append() {
  const PendingRecord& record = writing_->record;
  Transfer transfer;
  transfer.kind = Transfer::Kind::kWrite;
  transfer.file = current_->file->descriptor();
  transfer.bytes = record.buffer.bytes().first(record.header.record_bytes());
  transfer.offset = current_->bytes;
  transfer.before = [bytes = transfer.bytes, header = record.header] { seal_record(bytes, header); };
  transfer.after = [this, file = transfer.file](int error) {
    if (error == 0 && is_removed(file)) error = ENOENT;
    post([error](BlockStore& store) { store.finish_write(error); });
  };
  io_->submit(std::move(transfer));
}

void BlockStore::finish_write(int error) {
  if (error != 0) return fail_writing(error);
  const RecordHeader& header = writing_->record.header;
  index_.add_record(*current_, {header.key, current_->bytes, header.record_bytes(), header.written_at});
  ++counters_.writes;
  counters_.write_bytes += header.record_bytes();
  counters_.write_seconds += std::chrono::duration<double>(Clock::now() - writing_->begun).count();
  let_go(*std::exchange(writing_, std::nullopt));
  write_next();
  if (on_written_) on_written_();
}

void BlockStore::let_go(Writing writing) {
  if (pass_on_) pass_on_(std::move(writing.record));
}

// Gives up what waits to be written and tries again later, with a new segment: the end of the current one may be torn.
void BlockStore::fail_writing(int error) {
  ++counters_.write_errors;
  counters_.writes_dropped += writes_.size();
  log_.warn(fmt::format("disk cache: cannot write to {}: {}; trying again in {} s", directory_.path(), std::strerror(error),
                        options_.write_pause.count()));
  if (current_ != nullptr) {
    index_.add_waste(*current_, writing_->record.header.record_bytes());
    if (current_->keys.empty()) drop(*current_);  // else a disk that stays full would leave an open file at each try
  }
  current_ = nullptr;
  let_go(*std::exchange(writing_, std::nullopt));
  for (Writing& writing : std::exchange(writes_, {})) let_go(std::move(writing));
  write_failed_at_ = options_.clock();
  if (error == ENOENT) forget_removed();
  const bool is_full = error == ENOSPC || error == EDQUOT;
  if (is_full && index_.segments().size() > 1) {  // as by a quota, of which the disk's space tells nothing
    drop(*index_.oldest());
    delete_one();
  }
  if (on_written_) on_written_();
}

// Somebody else has removed files: what we still have open would only keep their space from being freed.
void BlockStore::forget_removed() {
  for (const Segment* segment = index_.oldest(); segment != nullptr;) {
    const Segment* const next = index_.after(*segment);
    if (is_removed(segment->file->descriptor())) drop(*segment);
    segment = next;
  }
}

bool BlockStore::prune() {
  drop_surplus();
  delete_one();
  return !doomed_.empty();
}

void BlockStore::tend() {
  look_at_disk([](BlockStore& store) { store.prune(); });
}

void BlockStore::drop_surplus() {
  const std::uint64_t now = options_.clock();
  const auto is_old = [&](const Segment& segment) { return segment.newest + static_cast<std::uint64_t>(options_.ttl.count()) < now; };
  while (index_.oldest() != nullptr && index_.oldest() != current_ && (is_old(*index_.oldest()) || index_.bytes() > limit_bytes_))
    drop(*index_.oldest());
  while (index_.segments().size() > kMostSegments) drop(index_.smallest_but(current_));
}

void BlockStore::drop(const Segment& segment) {
  counters_.pruned += segment.keys.size();
  doomed_.push_back(segment.number);
  index_.drop(segment);
}

// And then the next one, so that a new segment never waits for all of them.
void BlockStore::delete_one() {
  if (doomed_.empty()) return;
  worker_.submit([this, number = doomed_.back()] {
    directory_.remove_segment(number);
    post([](BlockStore& store) { store.delete_one(); });
  });
  doomed_.pop_back();
}

}  // namespace braid::store
