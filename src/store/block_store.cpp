#include "store/block_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <sys/statvfs.h>
#include <utility>

namespace braid::store {

namespace {

constexpr std::uint64_t kSegmentsOfLimit = 32;  // so pruning takes about a thirtieth at once
constexpr std::uint64_t kLargestSegment = std::uint64_t{1} << 30U;
constexpr std::uint64_t kFewestRecords = 8;

}  // namespace

std::uint64_t wall_clock() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

DiskSpace disk_space(const std::string& directory) {
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0 || disk.f_blocks == 0)
    return {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};
  return {std::uint64_t{disk.f_bavail} * disk.f_frsize, std::uint64_t{disk.f_blocks} * disk.f_frsize};
}

struct BlockStore::Mailbox {
  BlockStore* store = nullptr;  // null once it is gone; loop only
};

struct BlockStore::Read {
  cache::PrefixKey key;
  std::shared_ptr<const Prefix> prefix;
  std::size_t tokens = 0;
  Buffer buffer;
  std::span<std::byte> record;
  SharedFile file;
  std::function<void(std::optional<ReadBlock>)> done;
  Clock::time_point begun;
};

Result<std::unique_ptr<BlockStore>> BlockStore::open(StoreOptions options, std::unique_ptr<Io> io, Post post,
                                                     SharedFile predecessors_lock) {
  const std::uint64_t least = kFewestRecords * most_record_bytes(options);
  if (options.limit_bytes < least)
    return invalid_argument(
        fmt::format("a disk limit of {} bytes is too low: blocks of this model want at least {}", options.limit_bytes, least));
  Result<Directory> directory = Directory::open(options.directory, predecessors_lock);
  if (!directory) return directory.error();
  std::unique_ptr<BlockStore> store(new BlockStore(std::move(options), std::move(*directory), std::move(io), std::move(post)));
  store->awaits_predecessor_ = predecessors_lock != nullptr && store->directory_.lock() == predecessors_lock;
  if (store->awaits_predecessor_) return store;
  if (const Result<void> scanned = store->scan(); !scanned) return scanned.error();
  return store;
}

BlockStore::BlockStore(StoreOptions options, Directory directory, std::unique_ptr<Io> io, Post post)
    : options_(std::move(options)), directory_(std::move(directory)), post_(std::move(post)), buffers_(record_buffers(options_)),
      limit_bytes_(options_.limit_bytes), segment_bytes_(segment_bytes(limit_bytes_)), mailbox_(std::make_shared<Mailbox>()),
      io_(std::move(io)), worker_(1) {
  mailbox_->store = this;
}

std::uint64_t BlockStore::segment_bytes(std::uint64_t limit) const {
  return std::clamp<std::uint64_t>(limit / kSegmentsOfLimit, most_record_bytes(options_), kLargestSegment);
}

BlockStore::~BlockStore() { mailbox_->store = nullptr; }

void BlockStore::post(std::function<void(BlockStore&)> call) const {
  post_([mailbox = mailbox_, call = std::move(call)]() noexcept {
    if (mailbox->store != nullptr) call(*mailbox->store);
  });
}

// The newest first: what is written last is most likely to be asked for.
Result<void> BlockStore::scan() {
  Result<std::vector<std::uint32_t>> numbers = directory_.segments();
  if (!numbers) return numbers.error();
  unscanned_ = std::move(*numbers);
  if (!unscanned_.empty()) next_segment_ = unscanned_.back() + 1;
  const Clock::time_point deadline = Clock::now() + options_.scan_patience;
  for (; !unscanned_.empty() && Clock::now() < deadline; unscanned_.pop_back()) {
    const SharedFile file = open_segment(unscanned_.back());
    add_scanned(unscanned_.back(), file, file != nullptr ? scan_segment(file->descriptor()) : Scan());
    drop_surplus();  // after each, since crashes may have left more files than may be open
  }
  scan_next();  // from here on the loop may call: nothing of the store is touched on this thread any more
  return {};
}

// And when the loop has taken it in the next one.
void BlockStore::scan_next() {
  if (unscanned_.empty()) return;
  const std::uint32_t last = unscanned_.back();
  unscanned_.pop_back();
  worker_.submit([this, number = last] {
    const SharedFile file = open_segment(number);
    Scan scan = file != nullptr ? scan_segment(file->descriptor()) : Scan();
    post([number, file, scan = std::move(scan)](BlockStore& store) {
      store.add_scanned(number, file, scan);
      store.prune();
      store.scan_next();
    });
  });
}

void BlockStore::take_over() {
  worker_.submit([this] { post([numbers = directory_.segments()](BlockStore& store) { store.on_listed(numbers); }); });
}

void BlockStore::on_listed(const Result<std::vector<std::uint32_t>>& numbers) {
  if (!numbers) return log_.warn("disk cache: going on without: " + numbers.error().message);
  unscanned_ = *numbers;
  if (!unscanned_.empty()) next_segment_ = unscanned_.back() + 1;
  awaits_predecessor_ = false;
  scan_next();
}

SharedFile BlockStore::open_segment(std::uint32_t number) const {
  int error = 0;
  return directory_.open_segment(number, error);
}

void BlockStore::add_scanned(std::uint32_t number, SharedFile file, const Scan& scan) {
  if (file == nullptr || scan.error != 0)
    return log_.warn(fmt::format("disk cache: a file in {} cannot be read; its blocks are left out", directory_.path()));
  Segment& segment = index_.add_segment(number, std::move(file));
  for (const ScannedRecord& record : scan.records) index_.add_record(segment, record);
  index_.add_waste(segment, scan.unreadable_bytes);
  if (scan.unreadable_bytes > 0)
    log_.warn(fmt::format(
        "disk cache: the last {} bytes of segment {} are no records (another version of braid, a write that was cut off, or damage)",
        scan.unreadable_bytes, number));
  if (segment.keys.empty()) drop(segment);
}

bool BlockStore::contains(const cache::PrefixKey& key) const {
  const SegmentIndex::Location* location = index_.find(key);
  return location != nullptr && location->written_at + static_cast<std::uint64_t>(options_.ttl.count()) >= options_.clock();
}

bool BlockStore::read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
                      std::function<void(std::optional<ReadBlock>)> done) {
  if (!contains(key)) return false;
  const SegmentIndex::Location& location = *index_.find(key);
  Buffer buffer = buffers_.acquire();
  if (!buffer || location.bytes > buffer.bytes().size()) return false;
  auto read = std::make_unique<Read>();
  read->key = key;
  read->prefix = std::move(prefix);
  read->tokens = tokens;
  read->record = buffer.bytes().first(location.bytes);
  read->buffer = std::move(buffer);
  read->file = location.segment->file;
  read->done = std::move(done);
  read->begun = Clock::now();
  Transfer transfer;
  transfer.kind = Transfer::Kind::kRead;
  transfer.file = read->file->descriptor();
  transfer.bytes = read->record;
  transfer.offset = location.offset;
  transfer.after = [this, id = next_read_, &read = *read](int error) {
    const Origin origin{options_.identity, read.prefix->view().first(read.tokens)};
    std::span<std::byte> payload;
    if (error == 0)
      if (const auto found = read_record(read.record, read.key, origin, options_.payload_bytes))
        payload = read.record.subspan(static_cast<std::size_t>(found->data() - read.record.data()), found->size());
    post([id, error, payload](BlockStore& store) { store.on_read(id, error, payload); });
  };
  const auto begun = reads_.emplace(next_read_++, std::move(read)).first;
  try {
    io_->submit(std::move(transfer));
  } catch (...) {
    reads_.erase(begun);  // nobody would hear of it again
    throw;
  }
  return true;
}

void BlockStore::on_read(std::uint64_t id, int error, std::span<std::byte> payload) {
  const auto found = reads_.find(id);
  const std::unique_ptr<Read> read = std::move(found->second);
  reads_.erase(found);
  if (payload.empty()) {
    ++counters_.read_errors;
    log_.warn(fmt::format("disk cache: a block could not be read from {}: {}; it will be computed", directory_.path(),
                          error != 0 ? std::strerror(error) : "its record is damaged or belongs to other tokens"));
    index_.erase(read->key);
    return read->done(std::nullopt);
  }
  ++counters_.reads;
  counters_.read_bytes += read->record.size();
  counters_.read_seconds += std::chrono::duration<double>(Clock::now() - read->begun).count();
  read->done(ReadBlock{std::move(read->buffer), payload});
}

DiskCacheStats BlockStore::stats() const {
  DiskCacheStats stats = counters_;
  stats.records = index_.records();
  stats.bytes = index_.bytes();
  stats.segments = index_.segments().size();
  return stats;
}

}  // namespace braid::store
