// A scheduler with a disk tier, and a disk that a test can make fail, slow or hold its reads.
#pragma once

#include "sched/rig.h"
#include "store/block_store.h"
#include "support/folder.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace braid::sched::test {

using braid::test::Folder;

// An Io that loses some transfers' success, or keeps reads back.
class MoodyIo final : public store::Io {
 public:
  struct Mood {
    std::atomic<int> fail_one_in{0};  // 0: none
    std::atomic<bool> hold_reads{false};
    std::atomic<int> read_milliseconds{0};  // what the device takes for a read
  };
  explicit MoodyIo(std::shared_ptr<Mood> mood) : mood_(std::move(mood)), io_(store::make_thread_io(2)) {}

  void submit(store::Transfer transfer) override {
    if (mood_->hold_reads && transfer.kind == store::Transfer::Kind::kRead) return held_.push_back(std::move(transfer));
    if (const int slow = mood_->read_milliseconds; slow > 0 && transfer.kind == store::Transfer::Kind::kRead)
      transfer.after = [after = std::move(transfer.after), slow](int result) {
        std::this_thread::sleep_for(std::chrono::milliseconds(slow));
        after(result);
      };
    const int one_in = mood_->fail_one_in;
    if (one_in > 0 && random_() % static_cast<unsigned>(one_in) == 0) {
      transfer.after = [after = std::move(transfer.after)](int) { after(EIO); };
      if (transfer.kind == store::Transfer::Kind::kWrite) transfer.bytes = transfer.bytes.first(transfer.bytes.size() / 2);
    }
    io_->submit(std::move(transfer));
  }
  const char* name() const override { return "moody"; }

 private:
  std::shared_ptr<Mood> mood_;
  std::mt19937 random_{1};
  std::vector<store::Transfer> held_;
  std::unique_ptr<store::Io> io_;
};

inline SchedulerOptions tier_options(std::int32_t blocks, bool write_through = false) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = blocks;
  options.write_through = write_through;
  options.disk_always = true;  // the fake computes in no time
  return options;
}

// One life of a server over the folder.
struct Server {
  std::unique_ptr<store::BlockStore> store;
  std::size_t buffers = 0;
  std::unique_ptr<Rig> rig;

  Server(const std::string& folder, const SchedulerOptions& options, std::shared_ptr<MoodyIo::Mood> mood = {},
         const FakeModelOptions& model = {}) {
    rig = std::make_unique<Rig>(options, model, [&](boost::asio::io_context& loop) {
      store::StoreOptions wanted;
      wanted.directory = folder;
      wanted.limit_bytes = 4 << 20;
      wanted.identity = "the fake";
      wanted.payload_bytes = static_cast<std::size_t>(options.block_tokens) * sizeof(TokenId);
      wanted.most_tokens = options.context_length;
      wanted.buffer_memory = options.groups.size() << 21;  // a long prompt is written at once
      wanted.write_pause = std::chrono::seconds(0);
      auto io = mood ? std::make_unique<MoodyIo>(mood) : store::make_thread_io(2);
      store = *store::BlockStore::open(wanted, std::move(io),
                                       [&loop](std::function<void()> call) { boost::asio::post(loop, std::move(call)); });
      buffers = store->free_buffers();
      return store.get();
    });
  }
  ~Server() {
    rig->model.release();
    rig->scheduler.reset();
    store.reset();  // before the loop that it posts to
  }

  std::int32_t cached(const std::vector<TokenId>& prompt, std::int32_t max_tokens = 3, const std::string& salt = {}) {
    return rig->complete(prompt, max_tokens, salt).finish->usage.cached_tokens;
  }
  void settle() {
    EXPECT_TRUE(rig->run_until([&] { return store->idle(); }));
  }
};

// The life of a server that leaves what it has computed of `prompt` in the folder.
inline void leave_on_disk(const std::vector<TokenId>& prompt, const std::string& folder,
                          const SchedulerOptions& options = tier_options(100, true)) {
  Server server(folder, options);
  server.cached(prompt);
  server.rig->run_to_end();
}

}  // namespace braid::sched::test
