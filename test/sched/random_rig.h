// What random tests of the scheduler run on: random options, one to three groups of layers, and for two of three seeds a disk tier that has
// moods.
#pragma once

#include "sched/disk_rig.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

namespace braid::sched::test {

// Blocks that a sequence of so many places needs at once, of all groups: with a window no more than it shows, and one at each end.
inline std::int64_t blocks_at_once(const SchedulerOptions& options, std::int64_t places) {
  std::int64_t blocks = options.state_blocks;
  for (const auto& [window, sink] : options.groups) {
    const auto blocks_for = [&](std::int32_t positions) { return (positions + options.block_tokens - 1) / options.block_tokens; };
    blocks += window > 0 ? std::min<std::int64_t>(places, blocks_for(window) + blocks_for(sink) + 2) : places;
  }
  return blocks;
}

class RandomRig {
 public:
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }

 protected:
  // `adjust` changes options that a test wants otherwise; it may pick() too.
  RandomRig(std::uint32_t seed, void (*adjust)(RandomRig& random, SchedulerOptions& options)) : random_(seed) {
    SchedulerOptions options = random_options();
    adjust(*this, options);
    if (seed % 3 == 0) {
      alone_ = std::make_unique<Rig>(options, random_model());
    } else {
      server_ = std::make_unique<Server>(folder_.path(), options, mood_, random_model());
    }
  }
  ~RandomRig() = default;

  Rig& rig() { return server_ != nullptr ? *server_->rig : *alone_; }

  void expect_no_buffer_leaked() const {
    if (server_ == nullptr) return;
    EXPECT_EQ(server_->store->free_buffers(), server_->buffers) << "buffers have leaked";
  }

  std::mt19937 random_;
  const Folder folder_;
  const std::shared_ptr<MoodyIo::Mood> mood_ = std::make_shared<MoodyIo::Mood>();
  std::unique_ptr<Server> server_;  // this or
  std::unique_ptr<Rig> alone_;      // that

 private:
  SchedulerOptions random_options() {
    SchedulerOptions options = Rig::small_options();
    options.max_batch = 1 + pick(12);
    options.max_batch_tokens = options.max_batch + 1 + pick(60);
    options.max_waiting = 20 + pick(60);
    options.block_tokens = 1 << pick(5);
    options.blocks = (60 + pick(200)) / options.block_tokens + 1;
    options.context_length = 48 + pick(116);
    options.stream_capacity = 1 + pick(20);
    options.draft_tokens = pick(2) == 0 ? 0 : 1 + pick(6);
    options.draft_always = pick(2) == 0;
    options.prefix_cache = pick(4) > 0;
    options.write_through = pick(2) == 0;
    options.disk_always = pick(4) > 0;
    if (pick(3) == 0) options.groups = {{1 + pick(60), pick(10)}};
    if (pick(3) == 0) options.groups.push_back({1 + pick(60), pick(10)});
    if (pick(3) == 0 && options.groups.front().window == 0) options.groups.insert(options.groups.begin(), step::Visibility{});
    if (pick(3) == 0) options.target_itl_ms = 1 + pick(20);
    if (pick(3) == 0) options.stall_park = std::chrono::milliseconds(pick(3));
    if (pick(3) == 0) options.priority_ageing = std::chrono::milliseconds(pick(50));
    if (pick(4) == 0) options.blocks = pick(60) / options.block_tokens + 1;
    if (pick(2) == 0) {
      options.state_blocks = 1 + pick(2);
      options.state_interval = pick(3) == 0 ? 0 : 1 + pick(40);
      if (pick(3) == 0) options.most_state_blocks = pick(5 * options.state_blocks);
      options.blocks += options.state_blocks + 1;
    }
    return options;
  }

  FakeModelOptions random_model() {
    FakeModelOptions model;
    model.vocab = 20 + pick(200);
    model.eos = pick(2) == 0 ? 1 : -1;
    model.prefill_token_seconds = pick(2) == 0 ? 0.0 : 5e-3;
    model.decode_row_seconds = pick(2) == 0 ? 0.0 : 1e-3;
    return model;
  }
};

}  // namespace braid::sched::test
