#include "sched/batch_planner.h"

#include "braid/prefetch.h"
#include "sched/ticket.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace braid::sched {

namespace {

// The strand has read the rows that lay there, so its core has a part in their lines.
void fetch_places_ahead(std::vector<step::StepRow>& rows) {
  constexpr std::size_t kRowsAhead = 8;
  if (rows.size() + kRowsAhead < rows.capacity()) prefetch_lines_to_write(rows.data() + rows.size() + kRowsAhead, sizeof(step::StepRow));
}

}  // namespace

StepShape BatchPlanner::decode_shape(const SequenceMap& batch) {
  StepShape shape;
  for (const auto& [rank, sequence] : batch)
    if (sequence.may_decode()) shape.add_decode(sequence.progress.least());
  return shape;
}

bool BatchPlanner::add_decodes(SequenceMap& batch, PlannedStep& step, const DraftPace& pace, std::vector<Sequence*>& full) const {
  bool complete = true;
  for (auto& [rank, sequence] : batch) {
    if (sequence.takes_up_decoding()) {
      add_prefill(sequence, step, 1);
      continue;
    }
    if (!sequence.may_decode()) continue;
    if (stream_room(sequence) <= 0) {
      if (sequence.progress.most_pending() == 0) full.push_back(&sequence);
      continue;
    }
    std::int32_t guessed = draft_tokens_ > 0 ? drafts(sequence, step, pace) : 0;
    if (!cover(sequence, guessed) && (guessed == 0 || !cover(sequence, guessed = 0))) {
      complete = false;
      continue;
    }
    step.shape.add_decode(sequence.progress.least(), guessed);
    fetch_places_ahead(step.plan->rows);
    step::StepRow& row = step.plan->rows.emplace_back();
    row.input = step::RowInput::kSampled;
    row.output = draft_tokens_ > 0 ? step::RowOutput::kVerify : step::RowOutput::kSample;
    row.slack = sequence.progress.most() - sequence.progress.least();
    row.drafts = guessed;
    complete_row(sequence, step, row);
  }
  return complete;
}

// Where tokens are guessed: as many as are wanted, its stream and its answer have room for, and the step.
std::int32_t BatchPlanner::drafts(Sequence& sequence, const PlannedStep& step, const DraftPace& pace) const {
  const Speculation& wanted = sequence.request->speculation;
  if (wanted.method == DraftMethod::kOff) return 0;
  const bool may_outgrow = stretch_beyond_ > 0 && !sequence.stretched_revision;
  const std::int32_t stays = may_outgrow ? stretch_beyond_ - sequence.progress.most() - 1 : draft_tokens_;
  const std::int32_t most =
      std::min({draft_tokens_, std::max(0, stays), stream_room(sequence) - 1, sequence.most_positions() - sequence.progress.most() - 1,
                max_batch_tokens_ - step.shape.decode_rows - max_batch_});
  return pace.drafts(sequence.drafts, wanted.max_tokens > 0 ? std::min(most, wanted.max_tokens) : most);
}

// Takes the blocks that a row with so many drafts may reach. False when there are too few.
bool BatchPlanner::cover(Sequence& sequence, std::int32_t drafts) const {
  const std::int32_t reach = std::min(sequence.progress.most() + 1 + drafts, sequence.most_positions());
  return reach <= sequence.blocks.places() * block_tokens_ || sequence.blocks.grow_to(blocks_for(reach));
}

void BatchPlanner::add_prefills(SequenceMap& batch, PlannedStep& step, const PrefillPace& pace) const {
  if (step.members.size() == batch.size()) return;  // all have a row, and going through thousands takes time
  for (auto& [rank, sequence] : batch) {
    if (sequence.phase != SequencePhase::kPrefill) continue;
    const std::int32_t left = max_batch_tokens_ - step.shape.decode_rows - step.shape.prefill_tokens;
    const std::int32_t room = std::min(left, pace.slice_tokens(step.shape, sequence.progress.planned()));
    if (room == 0) return;
    const std::int32_t shared = sequence.alone_after.value_or(0) - sequence.progress.planned();
    add_prefill(sequence, step, shared > 0 ? std::min(room, shared) : room);
  }
}

std::int32_t BatchPlanner::add_prefill(Sequence& sequence, PlannedStep& step, std::int32_t room) const {
  const std::int32_t count = slice(sequence, std::min(room, max_batch_tokens_));
  if (count == 0) return 0;
  step::StepRow& row = step.plan->rows.emplace_back();
  row.count = count;
  row.token_begin = static_cast<std::uint32_t>(step.plan->tokens.size());
  const bool is_last = sequence.progress.planned() + row.count == sequence.known();
  if (is_last && sequence.request->pooling != Pooling::kNone) {
    row.output = step::RowOutput::kVector;
  } else if (is_last && sequence.stop.max_tokens > 0) {
    row.output = step::RowOutput::kSample;
  }
  const auto tokens = sequence.tokens.begin() + sequence.progress.planned();
  step.plan->tokens.insert(step.plan->tokens.end(), tokens, tokens + row.count);
  if (!sequence.request->media.empty()) add_given(sequence, *step.plan, row);
  if (sequence.awaits_prompt_logprobs()) add_scored(sequence, *step.plan, row);
  step.shape.add_prefill(sequence.progress.planned(), row.count);
  complete_row(sequence, step, row);
  if (is_last) sequence.phase = SequencePhase::kDecode;
  return count;
}

// Tokens of its next slice. Where not all blocks were taken at admission, a window lets go of old ones and new ones are taken.
std::int32_t BatchPlanner::slice(Sequence& sequence, std::int32_t room) const {
  const std::int32_t count = whole_media(sequence, std::min(room, sequence.known() - sequence.progress.planned()), true);
  const std::int32_t blocks = (sequence.progress.planned() + count + block_tokens_ - 1) / block_tokens_;
  if (sequence.blocks.places() >= blocks) return count;
  move_window(sequence, groups_, blocks);
  const std::int32_t reached = sequence.blocks.places() * block_tokens_ - sequence.progress.planned();
  return reached < count ? whole_media(sequence, reached, false) : count;
}

// So many tokens of a slice, or fewer or more, so that it ends within no span that has to be computed as a whole: before it, or, where the
// slice begins with it, behind it, or, if it may not be longer, nowhere.
std::int32_t BatchPlanner::whole_media(const Sequence& sequence, std::int32_t count, bool may_grow) const {
  if (!media_whole_ || count <= 0) return count;
  const std::int32_t begin = sequence.progress.planned();
  const std::int32_t end = begin + count;
  for (const MediaSpan& span : sequence.request->media) {
    if (span.first >= end || span.first + span.count <= end) continue;
    if (span.first > begin) return span.first - begin;
    return may_grow ? span.first + span.count - begin : 0;
  }
  return count;
}

// Those of its media that lie within the slice.
void BatchPlanner::add_given(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row) {
  const std::int32_t begin = sequence.progress.planned();
  row.given_begin = static_cast<std::uint32_t>(plan.given.size());
  for (std::size_t i = 0; i < sequence.request->media.size(); ++i) {
    const MediaSpan& span = sequence.request->media[i];
    const std::int32_t first = std::max(span.first, begin);
    const std::int32_t last = std::min(span.first + span.count, begin + row.count);
    const std::int32_t offset = first - span.first;
    const MediaGrid grid = sequence.media_grids.empty() ? MediaGrid() : sequence.media_grids[i];
    const SpanVectors& own = sequence.request->media_vectors[i];
    if (first < last) plan.given.push_back({first - begin, last - first, own.vectors, own.begin + offset, offset, grid});
  }
  row.given_count = static_cast<std::uint32_t>(plan.given.size()) - row.given_begin;
}

// The slice foretells the token after it as well, if that is one of the prompt.
void BatchPlanner::add_scored(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row) {
  const std::int32_t end = sequence.progress.planned() + row.count;
  row.scored = std::max(0, std::min(end, sequence.prompt_tokens - 1) - sequence.progress.planned());
  row.scored_top = sequence.request->prompt_logprobs;
  if (row.scored == row.count) plan.tokens.push_back(sequence.tokens[static_cast<std::size_t>(end)]);
}

void BatchPlanner::add_start(Sequence& sequence, step::StepPlan& plan) const {
  step::SlotStart& start = plan.starts.emplace_back();
  start.slot = sequence.slot;
  start.sampling = sequence.request->sampling;
  start.stop = sequence.stop;
  start.generated = sequence.generated();
  start.pooling = sequence.request->pooling;
  start.pooled_output = sequence.request->pooled_output;
  start.pooled_from = sequence.request->pooled_from;
  start.mirostat_mu = sequence.mirostat_mu;
  start.constraint = sequence.request->constraint;
  if (draft_tokens_ > 0) start.speculation = sequence.request->speculation;
  start.recent = sequence.recent;
  if (step::needs_history(start)) {
    start.history_begin = static_cast<std::uint32_t>(plan.tokens.size());
    start.history_count = static_cast<std::uint32_t>(sequence.tokens.size());
    plan.tokens.insert(plan.tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
  }
  sequence.starts = false;
}

// The plan's last one: what all rows have.
void BatchPlanner::complete_row(Sequence& sequence, PlannedStep& step, step::StepRow& row) const {
  step::StepPlan& plan = *step.plan;
  if (sequence.starts) add_start(sequence, plan);
  row.slot = sequence.slot;
  row.adapter = sequence.adapter.index;
  row.stretched = stretch_beyond_ > 0 && sequence.stretched_revision.has_value();
  row.position = sequence.progress.least();
  row.shift = sequence.rotary_shift(row.position);
  if (sequence.fork_source.size() > 0) {
    for (std::int32_t group = 0; group < groups_.count(); ++group)
      plan.forks.push_back({sequence.fork_source[group], sequence.blocks[group][(row.position - 1) / block_tokens_]});
    sequence.fork_source.clear();  // who gets it next writes to it in this step or later, after the copy
  }
  if (groups_.has_states()) add_state(sequence, plan, row);
  drop_invisible(sequence, groups_);  // who gets them next writes in this step or later
  sequence.progress.plan(advance_of(row));
  add_blocks(sequence, plan, row);
  step.members.push_back(&sequence);
}

// Where another prompt may part from this one: behind marked turns and the last few, of which one is edited or left out, and before the last
// token, which one of the same tokens computes again; and at multiples of the interval. At the earliest behind `end`.
std::int32_t BatchPlanner::next_checkpoint(Sequence& sequence, std::int32_t end, const step::StepRow& row) const {
  std::int32_t next = state_interval_ > 0 ? (end / state_interval_ + 1) * state_interval_ : std::numeric_limits<std::int32_t>::max();
  if (row.input != step::RowInput::kTokens || sequence.generated() > 0) return next;
  const std::int32_t last = sequence.known() - 1;
  if (end < last) next = std::min(next, last);
  RecurrentState& state = *sequence.state;
  if (!state.first_turn_end) look_for_turns(sequence);
  if (const auto mark = std::ranges::upper_bound(state.marked_ends, end); mark != state.marked_ends.end() && *mark < last)
    next = std::min(next, *mark);
  const std::int32_t reached = std::min({next - 1, last, row.position + row.count});
  for (std::int32_t at = std::max(end + 1, *state.first_turn_end); at <= reached; ++at)
    if (is_turn_end(sequence, at)) return at;
  return next;
}

bool BatchPlanner::is_turn_end(const Sequence& sequence, std::int32_t end) const {
  return std::ranges::find(turn_ends_, sequence.tokens[static_cast<std::size_t>(end - 1)]) != turn_ends_.end();
}

// Of its prompt, from the end.
void BatchPlanner::look_for_turns(Sequence& sequence) const {
  constexpr std::int32_t kTurns = 8;
  RecurrentState& state = *sequence.state;
  const std::vector<std::int32_t>& marked = sequence.request->marked_turns;
  const std::int32_t wanted = marked.empty() ? kTurns : std::max(kTurns, std::ranges::max(marked) + 1);
  state.first_turn_end = 1;
  std::int32_t found = 0;
  for (std::int32_t at = sequence.prompt_tokens; at > 0 && found < wanted; --at) {
    if (!is_turn_end(sequence, at)) continue;
    if (std::ranges::find(marked, found) != marked.end()) state.marked_ends.push_back(at);
    if (++found == kTurns) state.first_turn_end = at;
  }
  std::ranges::reverse(state.marked_ends);
}

// Checkpoints are made of blocks to spare only, or take the place of one that the sequence keeps.
void BatchPlanner::add_state(Sequence& sequence, step::StepPlan& plan, step::StepRow& row) const {
  RecurrentState& state = *sequence.state;
  const auto append = [&](const cache::BlockTable& table) {
    const auto begin = static_cast<std::uint32_t>(plan.blocks.size());
    plan.blocks.insert(plan.blocks.end(), table.all().begin(), table.all().end());
    return begin;
  };
  for (std::int32_t i = 0; i < state.source.size(); ++i) plan.forks.push_back({state.source[i], sequence.blocks.state()[i]});
  sequence.keep_checkpoint(state.source_end, std::move(state.source));
  row.state_begin = append(sequence.blocks.state());
  row.snapshot_begin = static_cast<std::uint32_t>(plan.snapshots.size());
  if (state_interval_ == kNoCheckpoints) return;
  const auto add_copy = [&](std::int32_t end, std::int32_t copy_end) {
    std::optional<cache::BlockTable> spare = sequence.spare_state(row.position + row.count);
    if (!spare) return false;
    plan.snapshots.push_back({end, append(*spare)});
    ++row.snapshot_count;
    state.copies.push_back({copy_end, std::move(*spare)});
    return true;
  };
  if (row.output == step::RowOutput::kVerify) {
    if (passes_checkpoint(state, row)) add_copy(step::kBehindRow, RecurrentState::kUnknown);
    return;
  }
  for (std::int32_t end = row.position; end < row.position + row.count;) {
    end = next_checkpoint(sequence, end, row);
    if (end > row.position + row.count || !add_copy(end, end)) return;
  }
}

// Where a row that verifies ends is not known before it is back. So the first one that surely begins behind a multiple of the interval copies
// its state when it has come to its end.
bool BatchPlanner::passes_checkpoint(RecurrentState& state, const step::StepRow& row) const {
  if (state_interval_ == 0) return false;
  const bool passes = state.copied_at > 0 && row.position / state_interval_ > state.copied_at / state_interval_;
  if (passes || state.copied_at == 0) state.copied_at = row.position;
  return passes;
}

// Of all groups, one after the other.
void BatchPlanner::add_blocks(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row) const {
  const std::int32_t count = blocks_for(std::min(sequence.progress.most(), std::max(sequence.most_positions(), sequence.known())));
  row.block_begin = static_cast<std::uint32_t>(plan.blocks.size());
  row.block_count = static_cast<std::uint32_t>(count);
  sequence.blocks.for_each([&](const cache::BlockTable& table, std::int32_t group) {
    const cache::BlockId* const blocks = table.all().data();  // of a pointer's range insert() makes one copy
    plan.blocks.insert(plan.blocks.end(), blocks, blocks + count);
    if (!groups_.has_window(group)) return;
    const auto invisible = groups_.invisible(group, row.position);
    const auto begin = plan.blocks.end() - count;
    if (invisible.first < invisible.last) std::fill(begin + invisible.first, begin + invisible.last, cache::BlockTable::kAbsent);
  });
}

}  // namespace braid::sched
