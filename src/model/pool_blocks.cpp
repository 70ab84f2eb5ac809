// The pool of a model: its memory, and blocks that move before a step's rows.
#include "model/language_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace braid::model {

Result<void> LanguageModel::allocate_kv(std::int32_t blocks, Prefault prefault, std::int32_t most) {
  if (options_.passes != nullptr) {
    if (const Result<void> allocated = options_.passes->allocate(blocks); !allocated) return allocated;
    blocks_ = blocks;
    return {};
  }
  blocks_ = std::max(blocks, most);
  auto arena = KvArena::create(kv_groups_, blocks_, options_.huge_pages);
  if (!arena) return arena.error();
  kv_.emplace(std::move(*arena));
  if (prefault == Prefault::kInBackground) {
    kv_growth_.emplace(*kv_, blocks);
  } else {
    kv_->prefault(team_, options_.progress);
  }
  return {};
}

void LanguageModel::give_back_kv() {
  if (kv_growth_) kv_growth_->stop();
  if (kv_) kv_->give_back_all();
}

std::uint64_t LanguageModel::untouched_kv_bytes(std::uint64_t promised) const {
  if (!kv_growth_) return 0;
  const bool has_others = kv_growth_->is_stopped() || promised > kv_growth_->wanted();  // than the first ones
  const std::uint64_t present = has_others ? kv_->resident() : kv_growth_->present();
  return promised - std::min<std::uint64_t>(promised, present);
}

// Blocks are handed out in the order in which the pool grows, and it grows faster than any step fills them, so there is hardly ever
// anything to do here.
void LanguageModel::reach_blocks(const step::StepPlan& plan) {
  if (!kv_growth_ || kv_growth_->is_over()) return;
  std::int32_t last = -1;
  for (const std::int32_t block : plan.blocks) last = std::max(last, block);
  for (const step::BlockCopy& load : plan.loads) last = std::max(last, load.block);
  for (const step::BlockFork& fork : plan.forks) last = std::max(last, fork.to);
  kv_growth_->reach(std::min(last + 1, kv_->blocks()));
}

// Before any row: what the rows write to may be what is saved or checked.
void LanguageModel::move_blocks(const step::StepPlan& plan, step::StepResult& result) {
  if (options_.passes != nullptr) return options_.passes->move(plan);
  const auto for_each = [&](std::size_t count, const auto& body) {
    team_.for_chunks(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::size_t>(i));
    });
  };
  // What lies between is left from whoever had the block before.
  const auto for_written = [&](const step::BlockCopy& copy, const auto& use) {
    copy.group == step::kStateGroup ? kv_groups_.states.for_written(copy.part, use) : kv_groups_.layout(copy.group).for_written(use);
  };
  if (!plan.saves.empty())
    for_each(plan.saves.size(), [&](std::size_t i) {
      const step::BlockCopy& save = plan.saves[i];
      std::size_t end = 0;
      for_written(save, [&](std::size_t at, std::size_t bytes) {
        std::memset(save.bytes + end, 0, at - end);
        std::memcpy(save.bytes + at, kv_->block(save.block).data() + at, bytes);
        end = at + bytes;
      });
      std::memset(save.bytes + end, 0, kv_->block_bytes() - end);
    });
  for (std::size_t i = 0; i < plan.checks.size(); ++i) {
    const step::BlockCheck& check = plan.checks[i];
    bool equal = true;
    kv_groups_.layout(check.group).for_written([&](std::size_t at, std::size_t bytes) {
      equal = equal && std::memcmp(kv_->block(check.block).data() + at, kv_->block(check.other).data() + at, bytes) == 0;
    });
    if (!equal) result.unequal.push_back(static_cast<std::uint32_t>(i));
  }
  for (const step::BlockFork& fork : plan.forks) std::memcpy(kv_->block(fork.to).data(), kv_->block(fork.from).data(), kv_->block_bytes());
  if (!plan.loads.empty())
    for_each(plan.loads.size(), [&](std::size_t i) {
      const step::BlockCopy& load = plan.loads[i];
      for_written(load,
                  [&](std::size_t at, std::size_t bytes) { std::memcpy(kv_->block(load.block).data() + at, load.bytes + at, bytes); });
    });
  if (plan.given_back.empty()) return;
  if (kv_growth_) kv_growth_->stop();
  kv_->give_back(plan.given_back);
}

// Behind the model's own in the buffers, which begin as zeros.
void LanguageModel::move_drafts(const step::StepPlan& plan) {
  const std::size_t own = record_groups().block_bytes();
  for (const step::BlockCopy& save : plan.saves) std::memset(save.bytes + own, 0, draft_bytes_);
  drafts_.move(plan, own);
}

}  // namespace braid::model
