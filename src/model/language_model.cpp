// A step, in order: starts, guesses, rows put into passes, and what slots begin with next.
#include "model/language_model.h"

#include "model/require.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace braid::model {

void LanguageModel::execute(const step::StepPlan& plan, step::StepResult& result) {
  team_.pin_strand();
  compute(plan, result);
}

void LanguageModel::compute(const step::StepPlan& plan, step::StepResult& result) {
  const auto begin = std::chrono::steady_clock::now();
  result.clear();
  result.id = plan.id;
  reach_blocks(plan);
  try {
    check(plan);
    run(plan, result);
  } catch (...) {
    result.clear();
    result.failure = std::current_exception();
    abandon(plan);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void LanguageModel::run(const step::StepPlan& plan, step::StepResult& result) {
  drafts_.clear();
  between_layers_ = plan.between_layers;
  move_blocks(plan, result);
  if (draft_bytes_ > 0) move_drafts(plan);
  start_pass();
  start_slots(plan);
  result.rows.resize(plan.rows.size());
  settled_.assign(plan.rows.size(), 0);
  draft(plan, result);
  add_rows(plan, result);
  if (kv_groups_.states.blocks() > 0) copy_states(plan, result);
  for (std::size_t index = 0; index < plan.rows.size(); ++index)
    if (result.rows[index].ran) settle_row(plan.rows[index], result.rows[index], result);
}

const Decoder& LanguageModel::decoder_of(const step::StepRow& row) const {
  const AdapterSet* set = adapters_.find(row.adapter);
  const Decoder* decoder = set != nullptr && set->decoder != nullptr ? set->decoder.get() : first_.get();
  require(decoder != nullptr, "the revision of a row's weights is gone");
  return *decoder;
}

// A pass has one revision of the weights, of which there are seldom two.
void LanguageModel::add_rows(const step::StepPlan& plan, step::StepResult& result) {
  added_.assign(plan.rows.size(), 0);
  for (std::size_t first = 0; first < plan.rows.size(); ++first) {
    if (added_[first] != 0) continue;
    decoder_ = &decoder_of(plan.rows[first]);
    for (std::size_t index = first; index < plan.rows.size(); ++index) {
      if (added_[index] != 0 || &decoder_of(plan.rows[index]) != decoder_) continue;
      added_[index] = 1;
      add_row(plan, index, result);
    }
    if (!pass_.tokens.empty()) run_pass(result);
  }
}

// Its tokens to the pass, which runs whenever it is full. What was drafted comes behind what its slot sampled last.
void LanguageModel::add_row(const step::StepPlan& plan, std::size_t index, step::StepResult& result) {
  const step::StepRow& row = plan.rows[index];
  const Slot& slot = slots_[row.slot];
  step::RowResult& row_result = result.rows[index];
  row_result = {.slot = row.slot, .ran = !slot.finished(), .position = row.position};
  if (slot.finished()) return;
  require(!row.from_sampler() || slot.has_sampled(), "nothing was sampled for this slot yet");
  require(!(row.output == step::RowOutput::kVector && pools_[row.slot].is_off()), "no pooling was chosen for this slot");
  if (row.output == step::RowOutput::kVerify) place_drafts(index, row_result, result);
  announce_scored(plan, row, row_result, result);
  const auto append = [&](std::uint32_t begin, std::size_t count) {
    const auto at = static_cast<std::uint32_t>(pass_.blocks.size());
    const auto blocks = std::span(plan.blocks).subspan(begin, count);
    pass_.blocks.insert(pass_.blocks.end(), blocks.begin(), blocks.end());
    return at;
  };
  const auto state_blocks = static_cast<std::size_t>(kv_groups_.states.blocks());
  const std::span<const TokenId> guesses = drafts_.of(index);
  const std::int32_t count = row.count + row_result.drafted;
  // What is kept of guesses is kept within a pass.
  const bool keeps = state_blocks > 0 && row_result.drafted > 0;
  if (keeps && pass_.tokens.size() + static_cast<std::size_t>(count) > static_cast<std::size_t>(options_.pass_rows)) run_pass(result);
  std::uint32_t tables = 0;
  std::uint32_t snapshot = row.snapshot_begin;
  std::int32_t shift = row.shift;
  for (std::int32_t i = 0; i < count; ++i) {
    const step::GivenVectors* const given = row.given_count > 0 ? given_at(plan, row, i) : nullptr;
    if (given != nullptr && options_.media_both_ways && !pass_.tokens.empty() &&
        pass_.tokens.size() + static_cast<std::size_t>(given->first + given->count - i) > static_cast<std::size_t>(options_.pass_rows))
      run_pass(result);
    if (i == 0 || pass_.tokens.empty()) {
      tables = append(row.block_begin, std::size_t{row.block_count} * kv_groups_.groups.size());
      if (state_blocks > 0) {
        pass_.sequences.push_back({.first = static_cast<std::int64_t>(pass_.tokens.size()),
                                   .is_first = row.position + i == 0,
                                   .state = append(row.state_begin, state_blocks),
                                   .drafted = row_result.drafted,
                                   .kept = kept_,
                                   .snapshot_begin = static_cast<std::uint32_t>(pass_.snapshots.size())});
        pass_rows_.push_back(index);
        kept_ += row_result.drafted;
      }
    }
    const auto place = static_cast<std::size_t>(i);
    const TokenId token = !row.from_sampler() ? plan.tokens[row.token_begin + place] : i == 0 ? slot.last_token() : guesses[place - 1];
    const std::int32_t position = row_result.position + i;
    pass_.tokens.push_back({.token = token,
                            .position = position,
                            .tables = tables,
                            .table_size = row.block_count,
                            .adapter = row.adapter,
                            .shift = shift,
                            .stretched = row.stretched});
    if (given != nullptr) give_vector(*given, i, shift);
    if (state_blocks > 0) {
      step::PassSequence& sequence = pass_.sequences.back();
      ++sequence.count;
      if (snapshot < row.snapshot_begin + row.snapshot_count && plan.snapshots[snapshot].end == position + 1) {
        pass_.snapshots.push_back({sequence.count, append(plan.snapshots[snapshot++].block_begin, state_blocks)});
        ++sequence.snapshot_count;
      }
    }
    if (const auto purpose = purpose_of(row, row_result, i)) {
      pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size() - 1));
      const bool is_guessed = row.output == step::RowOutput::kVerify && i < row_result.drafted;
      picked_.push_back({index, std::int64_t{position} + 1, *purpose, row.from_sampler() ? i : 0, is_guessed ? guesses[place] : kNoGuess});
    }
    if (pass_.tokens.size() == static_cast<std::size_t>(options_.pass_rows)) run_pass(result);
  }
}

// What gives the row's index-th token its vector, or null.
const step::GivenVectors* LanguageModel::given_at(const step::StepPlan& plan, const step::StepRow& row, std::int32_t index) const {
  const auto given = std::span(plan.given).subspan(row.given_begin, row.given_count);
  const auto at = std::ranges::find_if(given, [&](const step::GivenVectors& g) { return index >= g.first && index < g.first + g.count; });
  return at == given.end() ? nullptr : &*at;
}

// To the row's index-th token, the last of the pass. `shift`: of the rotary positions of text before its span, and, once that is over, behind it.
void LanguageModel::give_vector(const step::GivenVectors& given, std::int32_t index, std::int32_t& shift) {
  step::PassToken& token = pass_.tokens.back();
  token.given = static_cast<std::int32_t>(pass_.given.size() / static_cast<std::size_t>(given_width()));
  const auto vector = given.vectors->begin() + (given.begin + index - given.first) * given_width();
  pass_.given.insert(pass_.given.end(), vector, vector + given_width());
  if (options_.media_both_ways) token.ahead = given.first + given.count - 1 - index;
  if (given.grid.columns == 0) return;
  const std::int32_t place = given.offset + index - given.first;
  token.shift = shift - place;
  token.down = place / given.grid.columns;
  token.across = place % given.grid.columns;
  if (place + 1 == given.grid.rows * given.grid.columns) shift += given.grid.shift();
}

// What the sequences of all rows that verify may say next.
void LanguageModel::draft(const step::StepPlan& plan, step::StepResult& result) {
  const bool is_recurrent = kv_groups_.states.blocks() > 0;
  std::int32_t left = is_recurrent ? std::min(space_.shape.drafts, options_.pass_rows - 1) : std::numeric_limits<std::int32_t>::max();
  for (const step::StepRow& row : plan.rows) {
    const std::int32_t room = std::min(draft_room(row), left);
    left -= is_recurrent ? room : 0;
    const std::size_t blocks = shares_blocks() ? row.block_count : 0;
    drafts_.add(row.slot, static_cast<std::size_t>(room), std::span(plan.blocks).subspan(row.block_begin, blocks));
  }
  drafts_.make(slots_);
  result.draft_failure = drafts_.failure();
  result.draft_work = drafts_.work();
}

// No further than its blocks, its answer and the context reach.
std::int32_t LanguageModel::draft_room(const step::StepRow& row) const {
  const Slot& slot = slots_[row.slot];
  if (row.output != step::RowOutput::kVerify || slot.finished()) return 0;
  const std::int32_t position = next_[row.slot];
  require(position >= row.position && position - row.position <= row.slack, "a row that verifies is not where its slot is");
  const std::int64_t covered = std::int64_t{row.block_count} * kv_groups_.block_tokens();
  const auto end = static_cast<std::int32_t>(std::min<std::int64_t>(covered, context_));
  require(position < end, "too few blocks");
  return std::clamp(std::min(end - position - 1, slot.tokens_left() - 1), 0, row.drafts);
}

// Where the slot really is, and room for what the guesses turn out to be.
void LanguageModel::place_drafts(std::size_t index, step::RowResult& row_result, step::StepResult& result) const {
  const std::span<const DraftSource> sources = drafts_.sources(index);
  row_result.position = next_[row_result.slot];
  row_result.drafted = static_cast<std::int32_t>(sources.size());
  row_result.is_cut = drafts_.is_cut(index);
  row_result.more_begin = static_cast<std::uint32_t>(result.more.size());
  for (const DraftSource source : sources) result.more.push_back({.source = source});
}

// What its slot's next row begins with.
void LanguageModel::settle_row(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) {
  next_[row.slot] = row_result.position + row.count + static_cast<std::int32_t>(row_result.more_count);
  if (row_result.sampled) remember(row_result, result);
  report_vector(row, row_result, result);
}

// For guesses to come.
void LanguageModel::remember(const step::RowResult& row_result, const step::StepResult& result) {
  if (row_result.finished) return drafts_.end(row_result.slot);
  drafts_.append(row_result.slot, row_result.token);
  for (const step::AnswerToken& more : std::span(result.more).subspan(row_result.more_begin, row_result.more_count))
    drafts_.append(row_result.slot, more.token);
}

// What the row's index-th token is picked for, if at all.
std::optional<std::size_t> LanguageModel::purpose_of(const step::StepRow& row, const step::RowResult& row_result,
                                                     std::int32_t index) const {
  const bool is_last = index + 1 >= row.count;  // drafted ones come after it
  if (row.samples() && is_last) return kSampled;
  if (index < row.scored) return row_result.scored_begin + static_cast<std::size_t>(index);
  if (pools_[row.slot].wants(row.position + index, is_last && row.output == step::RowOutput::kVector))
    return outputs_[row.slot] == PooledOutput::kLastInputs ? kTapped : kPooled;
  return is_heard(row, index) ? std::optional(kHeard) : std::nullopt;
}

void LanguageModel::start_slots(const step::StepPlan& plan) {
  for (const step::SlotStart& start : plan.starts) {
    const std::span<const TokenId> known = std::span(plan.tokens).subspan(start.history_begin, start.history_count);
    drafts_.start(start, known);
    try {
      slots_[start.slot].start(start, known, options_.end_tokens);
    } catch (const std::exception& error) {
      throw step::RowFailure(start.slot, error.what());
    }
    pools_[start.slot].start(start.pooling, model_.embedding, start.pooled_from);
    outputs_[start.slot] = start.pooled_output;
  }
}

// Makes the places for what the row's logits will say about tokens that are known already.
void LanguageModel::announce_scored(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& row_result,
                                    step::StepResult& result) const {
  row_result.scored_begin = static_cast<std::uint32_t>(result.scored.size());
  row_result.scored_count = static_cast<std::uint32_t>(row.scored);
  for (std::size_t i = 0; i < row_result.scored_count; ++i) {
    const auto top_begin = static_cast<std::uint32_t>(result.top.size());
    result.scored.push_back({plan.tokens[row.token_begin + 1 + i], 0.0F, top_begin, static_cast<std::uint32_t>(row.scored_top)});
    result.top.resize(result.top.size() + static_cast<std::size_t>(row.scored_top));
  }
}

// A failed step leaves no slot half-way: rows of these slots in the plan that is already posted are skipped.
void LanguageModel::abandon(const step::StepPlan& plan) {
  for (const step::StepRow& row : plan.rows)
    if (row.slot < slots_.size()) slots_[row.slot].abandon();
}

void LanguageModel::start_pass() {
  pass_.clear();
  pass_.given_parts = 1 + options_.media_layers;
  picked_.clear();
  pass_rows_.clear();
  kept_ = 0;
}

void LanguageModel::run_pass(step::StepResult& result) {
  compute_pass();
  for (std::size_t begin = 0, end = 0; begin < picked_.size(); begin = end) {
    const auto has_logits = [&](std::size_t index) { return picked_[index].scored < kTapped || picked_[index].scored == kSampled; };
    for (end = begin; end < std::min(picked_.size(), begin + logit_rows_) && has_logits(end);) ++end;
    if (end > begin) {
      use_logits(begin, end, result);
    } else if (picked_[end++].scored != kHeard) {
      pool(begin, result);
    }
  }
  if (heads_ != nullptr) tell_heads(result);
  if (kept_ > 0) replay_drafts(result);
  start_pass();
}

void LanguageModel::compute_pass() {
  if (options_.passes != nullptr) return options_.passes->run(pass_, *decoder_, adapters_);
  Transformer::PassState state = decoder_->transformer.begin(pass_, space_);
  const auto read = [&] {
    read_layer(state.layer);
    if (state.layer + 1 == model_.layers.size()) read_last_inputs();
  };
  read();
  while (decoder_->transformer.advance(pass_, *kv_, space_, state)) {
    read();
    if (between_layers_ != nullptr) (*between_layers_)();
  }
}

}  // namespace braid::model
