// Whether a plan keeps to step.h's rules: everything an address is computed from.
#include "model/language_model.h"
#include "model/require.h"

#include <algorithm>
#include <utility>

namespace braid::model {

void LanguageModel::check(const step::StepPlan& plan) const {
  require(blocks_ > 0, "there is no KV pool");
  const auto in_vocab = [&](TokenId id) { return id >= 0 && id < model_.vocab; };
  for (const step::SlotStart& start : plan.starts) check_start(start, plan);
  require(std::ranges::all_of(plan.tokens, in_vocab), "token out of the vocabulary");
  const auto in_pool = [&](std::int32_t block) { return block >= 0 && block < blocks_; };
  const auto is_group = [&](std::int32_t group) { return group >= 0 && group < kv_groups_.count(); };
  const auto is_part = [&](const step::BlockCopy& copy) {
    return copy.group == step::kStateGroup && copy.part >= 0 && copy.part < kv_groups_.states.blocks();
  };
  const auto is_copy = [&](const step::BlockCopy& copy) {
    return in_pool(copy.block) && (is_group(copy.group) || is_part(copy)) && copy.bytes != nullptr;
  };
  require(std::ranges::all_of(plan.saves, is_copy) && std::ranges::all_of(plan.loads, is_copy), "copied block out of the pool");
  require(std::ranges::all_of(
              plan.checks,
              [&](const step::BlockCheck& check) { return in_pool(check.block) && in_pool(check.other) && is_group(check.group); }),
          "checked block out of the pool");
  require(std::ranges::all_of(plan.forks,
                              [&](const step::BlockFork& fork) { return in_pool(fork.from) && in_pool(fork.to) && fork.from != fork.to; }),
          "copied block out of the pool");
  for (const step::StepRow& row : plan.rows) {
    require(row.slot < slots_.size(), "slot out of range");
    require(row.count >= 1 && row.position >= 0 && row.position <= context_ - row.count, "position out of the context");
    const std::size_t tables = std::uint64_t{row.block_count} * kv_groups_.groups.size();
    require(row.block_begin + tables <= plan.blocks.size(), "block table out of range");
    require(std::int64_t{row.block_count} * kv_groups_.block_tokens() >= std::int64_t{row.position} + row.count, "too few blocks");
    for (std::size_t group = 0; group < kv_groups_.groups.size(); ++group)
      check_blocks(std::span(plan.blocks).subspan(row.block_begin + group * row.block_count, row.block_count), row.position,
                   kv_groups_.groups[group].visibility);
    require(row.from_sampler() ? row.count == 1 : row.token_begin + static_cast<std::uint64_t>(row.count) <= plan.tokens.size(),
            "tokens out of range");
    require(row.shift <= 0 && row.shift >= -row.position, "rotary positions out of the context");
    check_given(row, plan);
    check_state(row, plan);
    require(row.adapter == 0 || adapters_.find(row.adapter) != nullptr, "no such adapter");
    const bool verifies = row.output == step::RowOutput::kVerify;
    require(verifies ? row.from_sampler() && row.slack >= 0 && row.drafts >= 0 : row.slack == 0 && row.drafts == 0,
            "drafts of no such row");
    require(row.scored >= 0 && row.scored <= row.count - (row.output != step::RowOutput::kNone ? 1 : 0), "more scored tokens than logits");
    require(row.scored == 0 ||
                (!row.from_sampler() && std::uint64_t{row.token_begin} + 1 + static_cast<std::uint64_t>(row.scored) <= plan.tokens.size()),
            "scored tokens out of range");
    require(row.scored_top >= 0 && row.scored_top <= kMaxTopLogprobs, "too many top log-probabilities");
  }
}

void LanguageModel::check_start(const step::SlotStart& start, const step::StepPlan& plan) const {
  const auto in_vocab = [&](TokenId id) { return id >= 0 && id < model_.vocab; };
  require(start.slot < slots_.size(), "slot out of range");
  require(std::ranges::all_of(start.stop.stop_token_ids, in_vocab), "stop token out of the vocabulary");
  require(std::ranges::all_of(start.sampling.logit_bias, in_vocab, &LogitBias::token), "biased token out of the vocabulary");
  require(std::uint64_t{start.history_begin} + start.history_count <= plan.tokens.size(), "history out of range");
  require(start.generated >= 0 && (!step::needs_history(start) || start.history_count >= static_cast<std::uint32_t>(start.generated)),
          "no history of what was generated");
}

void LanguageModel::check_given(const step::StepRow& row, const step::StepPlan& plan) const {
  require(std::uint64_t{row.given_begin} + row.given_count <= plan.given.size() && (row.given_count == 0 || !row.from_sampler()),
          "given vectors out of range");
  std::int32_t end = 0;
  for (const step::GivenVectors& given : std::span(plan.given).subspan(row.given_begin, row.given_count)) {
    require(given.count >= 1 && given.first >= end && given.first <= row.count - given.count, "given vectors out of their row");
    end = given.first + given.count;
    require(given.vectors != nullptr && given.begin >= 0 &&
                std::cmp_less_equal((given.begin + given.count) * given_width(), given.vectors->size()),
            "too few given vectors");
    const MediaGrid& grid = given.grid;
    require(grid.rows >= 0 && grid.columns >= 0 && given.offset >= 0 &&
                (grid.columns == 0 || given.offset <= std::int64_t{grid.rows} * grid.columns - given.count),
            "given vectors out of their grid");
    require(!options_.media_both_ways || given.count <= options_.pass_rows, "given vectors that no pass has room for");
  }
}

void LanguageModel::check_state(const step::StepRow& row, const step::StepPlan& plan) const {
  const auto count = static_cast<std::size_t>(kv_groups_.states.blocks());
  if (count == 0) return;
  const auto check_blocks = [&](std::uint32_t begin) {
    require(begin + count <= plan.blocks.size(), "state out of range");
    for (const std::int32_t block : std::span(plan.blocks).subspan(begin, count))
      require(block >= 0 && block < blocks_, "state out of the pool");
  };
  check_blocks(row.state_begin);
  require(std::uint64_t{row.snapshot_begin} + row.snapshot_count <= plan.snapshots.size(), "snapshots out of range");
  if (row.output == step::RowOutput::kVerify && row.snapshot_count > 0) {
    const step::StateSnapshot& snapshot = plan.snapshots[row.snapshot_begin];
    require(row.snapshot_count == 1 && snapshot.end == step::kBehindRow, "a snapshot that a row that verifies may not come by");
    return check_blocks(snapshot.block_begin);
  }
  std::int32_t last = row.position;
  for (const step::StateSnapshot& snapshot : std::span(plan.snapshots).subspan(row.snapshot_begin, row.snapshot_count)) {
    require(snapshot.end > last && snapshot.end <= row.position + row.count, "a snapshot where the row does not come by");
    last = snapshot.end;
    check_blocks(snapshot.block_begin);
  }
}

// Of the blocks of a row whose first token is at `position`.
void LanguageModel::check_blocks(std::span<const std::int32_t> blocks, std::int32_t position, const step::Visibility& visibility) const {
  const step::Visibility::Blocks invisible = visibility.invisible(position, kv_groups_.block_tokens());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool hidden = std::cmp_greater_equal(i, invisible.first) && std::cmp_less(i, invisible.last);
    require(blocks[i] < blocks_ && blocks[i] >= (hidden ? -1 : 0), "block out of the pool");
  }
}

}  // namespace braid::model
