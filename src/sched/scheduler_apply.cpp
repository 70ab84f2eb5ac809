// What becomes of sequences when a step comes back.
#include "sched/scheduler.h"
#include "sched/verify.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::sched {

namespace {

constexpr double kRateWeight = 0.1;  // of a new sample of the decode rate

std::string describe(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

// Where the executor knows it.
std::optional<step::SlotId> row_at_fault(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const step::RowFailure& error) {
    return error.slot;
  } catch (...) {
    return std::nullopt;
  }
}

Error internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message), {}}; }

// Why a row that was to choose a token has none.
Error no_token_error(const step::RowResult& row) {
  if (row.failure) return internal_error("choosing the next token failed: " + describe(row.failure));
  if (row.ruled_out)
    return invalid_argument("no token may come next: what the request bans leaves none of those that its other rules allow");
  return internal_error("no token was left to choose from: none of the model's logits is a number");
}

// The positions that its sequence has in the cache after a row that ran.
std::int32_t end_of(const step::StepRow& row, const step::RowResult* result) {
  const bool verifies = row.output == step::RowOutput::kVerify && result != nullptr;
  return verifies ? result->position + 1 + static_cast<std::int32_t>(result->more_count) : row.position + row.count;
}

// A row without a result may have been computed, and one that verifies to anywhere.
void carry_back(RecurrentState& state, const step::StepRow& row, const step::RowResult* result) {
  const bool verifies = row.output == step::RowOutput::kVerify;
  const bool has_run = result == nullptr || result->ran;
  const std::int32_t end = verifies && result == nullptr ? RecurrentState::kUnknown : end_of(row, result);
  if (has_run) state.came_back(end);
  if (verifies && row.snapshot_count > 0) state.copied(has_run ? end : RecurrentState::kUnknown);
}

// What later rows need of their sequences has left the caches while the step was computed.
void fetch_ahead(const std::vector<Sequence*>& members, std::size_t row) {
  constexpr std::size_t kSequenceAhead = 16;
  constexpr std::size_t kTicketAhead = 8;
  if (row + kSequenceAhead < members.size()) members[row + kSequenceAhead]->prefetch();
  constexpr std::size_t kPlaceAhead = 4;
  if (row + kTicketAhead < members.size()) prefetch_lines(members[row + kTicketAhead]->ticket, sizeof(SequenceTicket));
  if (row + kPlaceAhead >= members.size()) return;
  const Sequence& sequence = *members[row + kPlaceAhead];
  prefetch_lines(sequence.tokens.data() + sequence.tokens.size(), sizeof(TokenId));
  if (sequence.ticket != nullptr) sequence.ticket->stream().prefetch_place();
}

// Of an answer's token or a prompt's.
template <class Scored>
std::vector<TokenLogprob> top_of(const Scored& scored, const step::StepResult& step) {
  const auto top = step.top.begin() + scored.top_begin;
  return {top, top + scored.top_count};
}

// Its weights are replaced when no step that names it is out, so they are those that made the token that has come. Null: it is told.
std::shared_ptr<const std::string> revision_to_tell(Sequence& sequence) {
  if (!std::exchange(sequence.may_tell_revision, false)) return nullptr;
  std::shared_ptr<const std::string>& told = sequence.told_revision;
  if (told != nullptr && *told == sequence.adapter.revision) return nullptr;
  return told = std::make_shared<const std::string>(sequence.adapter.revision);
}

// The shape that a step turned out to have: fewer drafted tokens than there might have been, further on.
StepShape shape_of(const Step& step, StepShape shape) {
  const step::RowResult* result = step.result.rows.data();
  const step::RowResult* const end = result + step.result.rows.size();
  for (const step::StepRow& row : step.plan.rows) {
    const bool has_result = result != end && result->slot == row.slot;
    if (has_result && result->ran && row.output == step::RowOutput::kVerify) {
      shape.decode_rows -= row.drafts - result->drafted;
      shape.decode_read += result->position - row.position;
    }
    if (has_result) ++result;
  }
  return shape;
}

}  // namespace

void Scheduler::apply(const Step& step) {
  const PlannedStep& planned = posted_[step.plan.id % posted_.size()];
  roster_.count_step();
  if (!step.result.unequal.empty()) abort_on_difference(planned.checked[step.result.unequal.front()]);
  if (DiskTier* disk = roster_.disk_tier()) disk->on_step_back(step.plan, step.result.failure != nullptr);
  if (step.result.failure) apply_failure(step, planned);
  if (step.result.draft_failure && !std::exchange(warned_of_drafts_, true))
    spdlog::warn("guessing tokens failed, answers come without: {}", describe(step.result.draft_failure));
  const step::RowResult* result = step.result.rows.data();
  const step::RowResult* const end = result + step.result.rows.size();
  GivenByStep given;
  for (std::size_t i = 0; i < step.plan.rows.size(); ++i) {
    fetch_ahead(planned.members, i);
    const step::StepRow& row = step.plan.rows[i];
    Sequence& sequence = *planned.members[i];
    const bool has_result = result != end && result->slot == row.slot;  // rows that do not sample may have none
    sequence.progress.came_back(advance_of(row));
    if (sequence.state != nullptr) carry_back(*sequence.state, row, has_result ? result : nullptr);
    if (sequence.phase != SequencePhase::kDone && !sequence.is_void) {
      quarantine_.clear(sequence, end_of(row, has_result ? result : nullptr));
      apply_row(sequence, row, has_result ? result : nullptr, step.result);
    }
    if (has_result) given.add(*result++);
    if (sequence.progress.leave_step()) roster_.settle(sequence);
  }
  for (Sequence* sequence : planned.loading)
    if (sequence->progress.leave_step()) roster_.settle(*sequence);
  count(step, planned.shape, given);
}

// Whoever is in it goes on from what came back before, but for who is found guilty. A step that was posted after the one that failed and
// shares rows with it built on what that did not compute: if it fails as well, nobody is to blame.
void Scheduler::apply_failure(const Step& step, const PlannedStep& planned) {
  suspects_.clear();
  Sequence* guilty = nullptr;
  const auto is_void = [](const Sequence* sequence) { return sequence->is_void; };
  const bool built_on_failure = std::ranges::any_of(planned.members, is_void) || std::ranges::any_of(planned.loading, is_void);
  const std::optional<step::SlotId> named = row_at_fault(step.result.failure);
  const auto retry = [&](Sequence& sequence) {
    if (sequence.phase != SequencePhase::kDone) sequence.is_void = true;
    if (sequence.active()) {
      suspects_.push_back(&sequence);
      roster_.retry(sequence);
    }
  };
  for (std::size_t i = 0; i < step.plan.rows.size(); ++i) {
    Sequence& sequence = *planned.members[i];
    if (named == step.plan.rows[i].slot && !sequence.is_void && !sequence.is_leaving()) guilty = &sequence;
    retry(sequence);
  }
  for (Sequence* sequence : planned.loading) retry(*sequence);
  if (guilty == nullptr && !built_on_failure && !suspects_.empty()) guilty = quarantine_.accuse(suspects_);
  ++counters_.retried_steps;
  spdlog::warn("a step of {} rows failed and is computed again{}: {}", step.plan.rows.size(),
               guilty != nullptr ? " without request '" + guilty->request->id + "'" : "", describe(step.result.failure));
  if (guilty == nullptr) return;
  ++counters_.failed_rows;
  finish(*guilty, FinishReason::kError, internal_error("the model failed in a step: " + describe(step.result.failure)));
}

void Scheduler::count(const Step& step, const StepShape& planned, const GivenByStep& given) {
  if (step.plan.rows.empty()) return;
  const StepShape shape = options_.draft_tokens > 0 && !step.result.failure ? shape_of(step, planned) : planned;
  ++counters_.steps;
  const double seconds = step.result.seconds;
  const double share = static_cast<double>(shape.prefill_tokens) / (shape.prefill_tokens + shape.decode_rows);
  counters_.prefill_seconds += seconds * share;
  counters_.decode_seconds += seconds * (1.0 - share);
  if (step.result.failure) return pace_.pass_over(shape);
  counters_.prompt_tokens += static_cast<std::uint64_t>(shape.prefill_tokens);
  counters_.drafts.read += static_cast<std::uint64_t>(step.result.draft_work.read);
  counters_.step_tokens.observe(static_cast<std::uint64_t>(shape.prefill_tokens + shape.decode_rows));
  // A step that skipped rows was shorter than its shape says, one that moved blocks was longer.
  if (!given.by_all || step.plan.moves_blocks() || seconds <= 0.0) return pace_.pass_over(shape);
  pace_.observe(shape, seconds - step.result.draft_work.seconds);
  draft_pace_.observe(step.result.draft_work);
  if (shape.prefill_tokens > 0) return;
  const auto rows = static_cast<std::int32_t>(step.plan.rows.size());
  const step::DraftWork& work = step.result.draft_work;
  const double reading = work.passes == 0 ? work.seconds : 0.0;  // of texts, once
  if (options_.draft_tokens > 0) draft_pace_.settle(pace_.cost(), shape, rows, work.passes > 0, given.tokens, seconds - reading);
  decode_rate_ += (given.tokens / seconds - decode_rate_) * (decode_rate_ == 0.0 ? 1.0 : kRateWeight);
}

// A sequence that ends within its guesses says nothing of the rest.
void Scheduler::count_drafts(Sequence& sequence, const step::RowResult& row, const step::StepResult& step) {
  const auto accepted = static_cast<std::int32_t>(row.more_count);
  const std::int32_t drafted = row.finished ? accepted : row.drafted;
  std::int32_t by_model = 0;
  for (std::int32_t i = 0; i < drafted; ++i) {
    const std::size_t place = std::min(static_cast<std::size_t>(i), DraftStats::kPlaces - 1);
    const DraftSource source = step.more[row.more_begin + static_cast<std::uint32_t>(i)].source;
    ++counters_.drafts.drafted[static_cast<std::size_t>(source)][place];
    if (i < accepted) ++counters_.drafts.accepted[static_cast<std::size_t>(source)][place];
    by_model += source == DraftSource::kDraft || source == DraftSource::kMtp ? 1 : 0;
  }
  draft_pace_.observe(sequence.drafts, drafted, accepted, by_model, row.is_cut && !row.finished);
}

// The next one of its answer: of a row or one more of its tokens.
template <class Answered>
void Scheduler::take_token(Sequence& sequence, const Answered& answered, const step::StepResult& step) {
  sequence.tokens.push_back(answered.token);
  ++counters_.generated_tokens;
  Token token(answered.token, answered.logprob);
  if (answered.top_count > 0 || answered.drawn_logprob != 0.0F || sequence.may_tell_revision)
    token.details =
        std::make_unique<const TokenDetails>(TokenDetails{top_of(answered, step), answered.drawn_logprob, revision_to_tell(sequence)});
  sequence.ticket->stream().push(std::move(token));
}

// Also for a sequence that has been preempted meanwhile: its token is right, whatever becomes of its blocks.
void Scheduler::apply_row(Sequence& sequence, const step::StepRow& row, const step::RowResult* result, const step::StepResult& step) {
  if (row.samples() && (result == nullptr || !result->ran || !result->sampled)) return end_without_token(sequence, result);
  if (row.output == step::RowOutput::kVector && (result == nullptr || result->vector_count == 0)) {
    ++counters_.failed_rows;
    finish(sequence, FinishReason::kError, internal_error("the model gave no vector of numbers for this prompt"));
    return;
  }
  if (row.output == step::RowOutput::kVerify) count_drafts(sequence, *result, step);
  if (row.samples() && result->more_count > 0) accept_drafted(sequence, *result, step);
  const std::int32_t begin = result != nullptr && row.output == step::RowOutput::kVerify ? result->position : row.position;
  sequence.progress.came_back(advance_of(row), begin, end_of(row, result));
  roster_.publish(sequence);
  if (sequence.awaits_prompt_logprobs()) report_prompt(sequence, row, result, step);
  if (row.samples()) {
    accept(sequence, *result, step);
  } else if (row.output == step::RowOutput::kVector) {
    give_vector(sequence, *result, step);
  } else if (sequence.stop.max_tokens == 0 && row.position + row.count == sequence.known()) {
    finish(sequence, FinishReason::kLength);
  }
}

void Scheduler::end_without_token(Sequence& sequence, const step::RowResult* result) {
  const bool is_own_fault = result != nullptr && result->ran && result->finished;
  if (is_own_fault && result->failure) ++counters_.failed_rows;
  finish(sequence, FinishReason::kError,
         is_own_fault ? no_token_error(*result) : internal_error("the model gave no token for a running sequence"));
}

// What was computed again after a preemption has been reported before.
void Scheduler::report_prompt(Sequence& sequence, const step::StepRow& row, const step::RowResult* result, const step::StepResult& step) {
  std::vector<PromptToken> tokens;
  if (sequence.reported == 0) tokens.push_back({sequence.tokens[0], std::nullopt, {}});
  const std::uint32_t count = result != nullptr ? result->scored_count : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t place = row.position + 1 + static_cast<std::int32_t>(i);
    if (place < sequence.reported) continue;
    const step::ScoredToken& scored = step.scored[result->scored_begin + i];
    tokens.push_back({scored.token, scored.logprob, top_of(scored, step)});
  }
  if (tokens.empty()) return;
  sequence.reported += static_cast<std::int32_t>(tokens.size());
  TokenStream& stream = sequence.ticket->stream();
  stream.push_prompt(std::move(tokens));
  touched_.push_back(&stream);
}

void Scheduler::give_vector(Sequence& sequence, const step::RowResult& row, const step::StepResult& step) {
  const auto begin = step.vectors.begin() + row.vector_begin;
  sequence.ticket->stream().push_vector({begin, begin + row.vector_count});
  finish(sequence, FinishReason::kStop);
}

// All but the last of the row's tokens: they are in the cache by now, and can be published.
void Scheduler::accept_drafted(Sequence& sequence, const step::RowResult& row, const step::StepResult& step) {
  take_token(sequence, row, step);
  for (std::uint32_t i = 0; i + 1 < row.more_count; ++i) take_token(sequence, step.more[row.more_begin + i], step);
}

// The last of them, which the cache does not hold yet.
void Scheduler::accept(Sequence& sequence, const step::RowResult& row, const step::StepResult& step) {
  if (row.more_count == 0) {
    take_token(sequence, row, step);
  } else {
    take_token(sequence, step.more[row.more_begin + row.more_count - 1], step);
  }
  sequence.mirostat_mu = row.mirostat_mu;
  TokenStream& stream = sequence.ticket->stream();
  assert(row.finished || sequence.generated() < sequence.stop.max_tokens);
  if (row.finished) {
    finish(sequence, row.reason);
  } else {
    touched_.push_back(&stream);
  }
}

}  // namespace braid::sched
