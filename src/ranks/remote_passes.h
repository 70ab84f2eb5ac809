// Passes that the ranks of a group compute.
#pragma once

#include "model/pass_runner.h"
#include "ranks/rank_blocks.h"
#include "ranks/rank_group.h"
#include "ranks/rank_watch.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace braid::ranks {

// Of the group, and with it of all that its pool held.
class RanksLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RemotePasses final : public model::PassRunner {
 public:
  // `blocks`: of the pool, where they leave it; none: they do not.
  RemotePasses(std::unique_ptr<RankGroup> group, std::int32_t vocab, std::optional<RankBlocks> blocks = {})
      : group_(std::move(group)), vocab_(vocab), blocks_(std::move(blocks)), times_(static_cast<std::size_t>(group_->size())),
        forgotten_(std::make_shared<Forgotten>()) {}

  // Called on the strand when they are lost, once; until then nobody is told. Before the first pass.
  void on_lost(std::function<void(const std::string& why)> tell) { on_lost_ = std::move(tell); }

  Result<void> allocate(std::int32_t blocks) override { return group_->allocate(blocks); }
  void move(const step::StepPlan& plan) override;
  Result<std::shared_ptr<const model::Copies>> hand_out(const model::Adapter& adapter) override;
  Result<std::shared_ptr<const model::Copies>> hand_out(const files::ByteSource& tensors, bool partial,
                                                        const model::Copies& older) override;
  Result<void> measure(model::Adapter& adapter, const model::Copies& weights) override;
  std::shared_ptr<const model::Copies> loaded() override;
  void run(const step::Pass& pass, const model::Decoder& decoder, const model::AdapterTable& adapters) override;
  model::Rows logits(std::int64_t begin, std::int64_t count) override;
  void hidden(std::int64_t picked, std::span<float> out) override;

  // Of the processes, whether or not a pass runs. Any thread.
  const RankWatch& watch() const { return group_->watch(); }
  // A pass that runs ends soon, with an exception that nobody is told of: nothing is to be computed any more. Any thread.
  void abandon();
  // Of all passes, by rank. Any thread.
  std::vector<Times> times() const;

 private:
  // What nobody needs any more, for the next pass to say.
  struct Forgotten {
    std::atomic<bool> any{false};  // so that a pass looks without the lock
    std::mutex mutex;
    std::vector<std::uint64_t> numbers;
  };
  class RankCopy;

  // Written by the strand alone.
  struct SharedTimes {
    std::atomic<double> compute{0.0};
    std::atomic<double> exchange{0.0};
  };

  void tell(Kind kind);
  void require_ranks() const;
  void tell_moves();
  void save(std::span<const step::BlockCopy> saves);
  void load(std::span<const step::BlockCopy> loads);
  void collect_uses(const step::Pass& pass, const model::Decoder& decoder, const model::AdapterTable& adapters);
  [[noreturn]] void lose(const std::string& why);
  std::span<const std::byte> ask(Kind kind, const Wanted& wanted, std::size_t values);

  const std::unique_ptr<RankGroup> group_;
  std::function<void(const std::string&)> on_lost_;
  std::string lost_;  // why; empty: they are there
  std::atomic<bool> is_abandoned_{false};
  const std::int64_t vocab_;
  const std::optional<RankBlocks> blocks_;
  std::vector<SharedTimes> times_;
  const std::shared_ptr<Forgotten> forgotten_;  // also of copies that outlive this
  std::uint64_t handed_out_ = 0;                // the last number; of whoever hands out
  Uses uses_;
  Moves moves_;
  BlockContents contents_;
  Bytes bytes_;
  std::vector<float> logits_;
};

}  // namespace braid::ranks
