// A store in a folder of its own, with a loop that the test drives.
#pragma once

#include "store/block_store.h"
#include "support/folder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace braid::store::test {

using braid::test::Folder;

// In the order of their names.
inline std::vector<std::string> segments(const Folder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".kv") files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

// A file that is deleted meanwhile has none.
inline std::uintmax_t bytes_in(const Folder& folder) {
  std::uintmax_t bytes = 0;
  for (const std::string& file : segments(folder)) {
    std::error_code gone;
    const std::uintmax_t size = std::filesystem::file_size(file, gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

// What other threads post, run by the test's thread.
class Loop {
 public:
  BlockStore::Post post() {
    return [this](std::function<void()> call) {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
      wake_.notify_one();
    };
  }

  // Runs calls until `reached`; false after a time that only a hang takes.
  bool run_until(const std::function<bool()>& reached) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!reached()) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_until(lock, deadline, [this] { return !calls_.empty(); })) return false;
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> calls_;
};

// An Io whose writes and reads can be made to fail, as a disk would.
class FaultyIo final : public Io {
 public:
  struct Faults {
    std::atomic<int> write_error{0};         // errno, or 0
    std::atomic<std::size_t> torn_after{0};  // bytes that a failing write still puts into the file
    std::atomic<int> read_error{0};
  };
  explicit FaultyIo(std::shared_ptr<Faults> faults) : faults_(std::move(faults)), io_(make_thread_io(1)) {}

  void submit(Transfer transfer) override {
    const int error = transfer.kind == Transfer::Kind::kWrite ? faults_->write_error.load() : faults_->read_error.load();
    if (error != 0) {
      const std::size_t torn = transfer.kind == Transfer::Kind::kWrite ? faults_->torn_after.load() : 0;
      transfer.after = [after = std::move(transfer.after), error](int) { after(error); };
      transfer.bytes = transfer.bytes.first(std::min(torn, transfer.bytes.size()));
    }
    io_->submit(std::move(transfer));
  }
  const char* name() const override { return "faulty"; }

 private:
  std::shared_ptr<Faults> faults_;
  std::unique_ptr<Io> io_;
};

inline StoreOptions small_options(const std::string& directory) {
  StoreOptions options;
  options.directory = directory;
  options.limit_bytes = 1 << 20;
  options.identity = "a model";
  options.payload_bytes = 1000;
  options.most_tokens = 256;
  options.buffer_memory = 64 << 10;
  return options;
}

// The same over a clock that stands still until the test moves it.
struct Timed {
  std::uint64_t now = 1'000'000;
  StoreOptions options;

  explicit Timed(const Folder& folder) : options(small_options(folder.path())) {
    options.clock = [this] { return now; };
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
};

// Block number `index` of a text that `seed` stands for: 4 tokens a block.
struct Block {
  Block(std::int32_t seed, std::int32_t index) {
    for (std::int32_t i = 0; i < (index + 1) * 4; ++i) prefix.tokens.push_back(seed * 1000 + i);
    key = cache::xxh3_key(std::as_bytes(std::span(prefix.tokens)));
    payload.resize(1000);
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(key.low + i * 7);
  }
  cache::PrefixKey key;
  Prefix prefix;
  std::vector<std::byte> payload;
};

inline bool begin_write(RecordStore& store, const Block& block) {
  auto record = store.begin_write(block.key, block.prefix.view());
  if (!record) return false;
  std::ranges::copy(block.payload, record->payload.begin());
  store.commit(std::move(*record));
  return true;
}

// True when it is there afterwards.
inline bool write(RecordStore& store, Loop& loop, const Block& block) {
  if (!begin_write(store, block)) return false;
  EXPECT_TRUE(loop.run_until([&] { return store.idle(); }));
  return store.contains(block.key);
}

// Whether it is found; what is found is right.
inline bool read(RecordStore& store, Loop& loop, const Block& block) {
  std::optional<bool> found;
  const bool begun =
      store.read(block.key, std::make_shared<const Prefix>(block.prefix), block.prefix.tokens.size(), [&](std::optional<ReadBlock> read) {
        found = read.has_value();
        if (read) {
          EXPECT_TRUE(std::ranges::equal(read->payload, block.payload)) << "wrong bytes";
        }
      });
  if (!begun) return false;
  EXPECT_TRUE(loop.run_until([&] { return found.has_value(); }));
  return *found;
}

struct Rig {
  Loop loop;
  std::unique_ptr<BlockStore> store;

  explicit Rig(const StoreOptions& options, std::unique_ptr<Io> io = make_thread_io(2), SharedFile predecessors_lock = nullptr) {
    auto opened = BlockStore::open(options, std::move(io), loop.post(), std::move(predecessors_lock));
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    if (opened) store = std::move(*opened);
  }

  bool begin_write(const Block& block) { return test::begin_write(*store, block); }
  bool write(const Block& block) { return test::write(*store, loop, block); }
  bool read(const Block& block) { return test::read(*store, loop, block); }
};

}  // namespace braid::store::test
