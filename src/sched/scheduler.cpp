#include "sched/scheduler.h"

#include "sched/admission.h"
#include "sched/verify.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace braid::sched {

namespace {

namespace asio = boost::asio;

// How long a sequence waits for a disk that gives nothing, before it computes what it wanted from there.
constexpr std::chrono::seconds kRestorePatience{2};
constexpr int kPruneSeconds = 60;
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
std::optional<model::SlotId> row_at_fault(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const model::RowFailure& error) {
    return error.slot;
  } catch (...) {
    return std::nullopt;
  }
}

Error internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message), {}}; }

Token token_of(const model::RowResult& row, const model::StepResult& step) {
  Token token;
  token.id = row.token;
  token.logprob = row.logprob;
  const auto top = step.top.begin() + row.top_begin;
  token.top.assign(top, top + row.top_count);
  return token;
}

// What later rows need of their sequences has left the caches while the step was computed.
void fetch_ahead(const std::vector<Sequence*>& members, std::size_t row) {
  constexpr std::size_t kSequenceAhead = 8;
  constexpr std::size_t kTicketAhead = 4;
  if (row + kSequenceAhead < members.size()) prefetch_lines(members[row + kSequenceAhead], sizeof(Sequence));
  if (row + kTicketAhead < members.size()) prefetch_lines(members[row + kTicketAhead]->ticket, sizeof(SequenceTicket));
}

std::vector<TokenLogprob> top_of(const model::ScoredToken& scored, const model::StepResult& step) {
  const auto top = step.top.begin() + scored.top_begin;
  return {top, top + scored.top_count};
}

}  // namespace

Scheduler::Scheduler(asio::io_context& loop, model::StepExecutor& executor, const SchedulerOptions& options, store::BlockStore* store,
                     std::function<void()> on_busy)
    : options_(options),
      on_busy_(std::move(on_busy)),
      planner_(options),
      pace_(options.prefill_slice_ms * 1e-3, options.target_itl_ms * 1e-3),
      roster_(options, store, [this] { wake_.notify(); }),
      wakes_(std::make_shared<WakeList>(loop)),
      stall_watch_(
          loop, options, roster_, [this](Sequence& sequence, const std::string& reason) { drop_slow_reader(sequence, reason); },
          [this] {
            deliver();
            wake_.notify();
          }),
      drain_deadline_(loop),
      disk_timer_(loop),
      strand_(loop, executor, [this] { wake_.notify_now(); }) {
  assert(!find_fault(options));
  const auto rethrow = [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
  };
  asio::co_spawn(loop, run(), rethrow);
  if (roster_.disk_tier() != nullptr) asio::co_spawn(loop, tend_disk(), rethrow);
}

Scheduler::~Scheduler() {
  finish_all({ErrorCode::kDraining, "the server is shutting down", {}});
}

Result<Ticket> Scheduler::submit(Request request) {
  if (draining_) return Error{ErrorCode::kDraining, "the server is shutting down and takes no new requests", {}};
  const Result<std::int32_t> room = answer_room(request, options_);
  if (!room) return room.error();
  if (!request.id.empty() && roster_.find(request.id) != nullptr)
    return invalid_argument(fmt::format("a request with the id {} is running already", request.id), "id");
  if (roster_.waiting_count() >= static_cast<std::size_t>(options_.max_waiting)) {
    ++counters_.refused;
    return overloaded(request.priority);
  }
  TicketListener& listener = *this;
  auto ticket = std::make_unique<SequenceTicket>(listener, options_.stream_capacity);
  Sequence& sequence = roster_.enqueue(std::move(request), *room, std::chrono::steady_clock::now());
  ticket->attach(sequence);
  roster_.prefetch(sequence);
  ++counters_.submitted;
  wake_.notify();
  return Ticket(std::move(ticket));
}

// How long all that is there will take is looked up once a turn, however many are refused.
Error Scheduler::overloaded(std::int32_t priority) {
  if (!time_to_drain_) {
    const double answer = answered_ > 0 ? static_cast<double>(answer_tokens_) / static_cast<double>(answered_) : 0.0;
    time_to_drain_ = time_to_drain(roster_, {pace_.tokens_per_second(), decode_rate_, answer});
  }
  const std::size_t position = roster_.place_of(priority, std::chrono::steady_clock::now());
  Error error{ErrorCode::kOverloaded,
              fmt::format("{} requests are waiting already; this one would have been number {}; try again in about {} s",
                          roster_.waiting_count(), position, time_to_drain_->count()),
              {}};
  error.retry_after = *time_to_drain_;
  error.queue_position = static_cast<std::uint32_t>(position);
  return error;
}

asio::awaitable<void> Scheduler::run() {
  for (;;) {
    turn();
    if (draining_ && has_ended()) break;
    co_await wake_.wait();
  }
  drain_deadline_.cancel();
  stall_watch_.stop();
  has_ended_ = true;
  disk_timer_.cancel();
}

// What was to be saved is on disk, too.
bool Scheduler::has_ended() const {
  if (!roster_.empty()) return false;
  const DiskTier* disk = roster_.disk_tier();
  return disk == nullptr || (strand_.idle() && !disk->has_saves() && disk->store().idle());
}

asio::awaitable<void> Scheduler::tend_disk() {
  DiskTier& disk = *roster_.disk_tier();
  bool is_pruning = true;
  for (int second = 0;; ++second) {
    disk_timer_.expires_after(std::chrono::seconds(1));
    const auto [error] = co_await disk_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || has_ended_) co_return;
    if (roster_.give_up_restoring(std::chrono::steady_clock::now() - kRestorePatience)) wake_.notify();
    if (is_pruning || second % kPruneSeconds == 0) is_pruning = disk.store().prune();
  }
}

void Scheduler::turn() {
  time_to_drain_.reset();
  while (const Step* step = strand_.returned()) {
    apply(*step);
    strand_.release();
  }
  while (strand_.can_post() && post_next()) {
  }
  deliver();
  stall_watch_.look();
}

void Scheduler::drop_slow_reader(Sequence& sequence, const std::string& reason) {
  ++counters_.slow_readers_dropped;
  spdlog::warn("request '{}' ended: {}", sequence.id, reason);
  finish(sequence, FinishReason::kCancelled, Error{ErrorCode::kCancelled, reason, {}});
}

bool Scheduler::post_next() {
  release_held(false);
  if (plan_next()) return true;
  // Those who are held may have what the others lack.
  return quarantine_.is_active() && strand_.idle() && release_held(true) && plan_next();
}

bool Scheduler::release_held(bool force) {
  released_.clear();
  quarantine_.release(roster_.batch(), force, released_);
  for (Sequence* sequence : released_) roster_.release(*sequence);
  return !released_.empty();
}

bool Scheduler::plan_next() {
  model::StepPlan& plan = strand_.next_plan();
  PlannedStep& step = posted_[plan.id % posted_.size()];
  step.plan = &plan;
  step.members.clear();
  step.loading.clear();
  step.checked.clear();
  step.shape = {};

  if (Sequence* suspect = quarantine_.next_alone(roster_.batch())) return post_alone(*suspect, step);

  counters_.preemptions += static_cast<std::uint64_t>(roster_.make_room());
  full_.clear();
  const bool all_have_blocks = planner_.add_decodes(roster_.batch(), step, full_);
  for (Sequence* sequence : full_) roster_.stall(*sequence);
  if (all_have_blocks && !quarantine_.is_active()) roster_.admit(pace_.tokens_per_second(), pace_.most_rows(static_cast<std::size_t>(options_.max_batch)));
  roster_.restore(plan, step.loading);
  planner_.add_prefills(roster_.batch(), step, pace_);
  roster_.add_checks(plan, step.checked);
  if (DiskTier* disk = roster_.disk_tier()) disk->complete(plan);

  return post(plan);
}

// So that it is seen whether a step of its row alone throws.
bool Scheduler::post_alone(Sequence& sequence, PlannedStep& step) {
  sequence.tried_alone = false;
  planner_.add_prefill(sequence, step, pace_.slice_tokens({}, sequence.planned));
  if (DiskTier* disk = roster_.disk_tier()) disk->complete(*step.plan);
  return post(*step.plan);
}

bool Scheduler::post(const model::StepPlan& plan) {
  if (plan.rows.empty() && !plan.moves_blocks()) return false;
  const bool was_idle = strand_.idle();
  strand_.post();
  if (was_idle && on_busy_) on_busy_();
  return true;
}

void Scheduler::apply(const Step& step) {
  const PlannedStep& planned = posted_[step.plan.id % posted_.size()];
  roster_.count_step();
  count(step, planned.shape);
  if (!step.result.unequal.empty()) abort_on_difference(planned.checked[step.result.unequal.front()]);
  if (DiskTier* disk = roster_.disk_tier()) disk->on_step_back(step.plan, step.result.failure != nullptr);
  if (step.result.failure) apply_failure(step, planned);
  const model::RowResult* result = step.result.rows.data();
  const model::RowResult* const end = result + step.result.rows.size();
  for (std::size_t i = 0; i < step.plan.rows.size(); ++i) {
    fetch_ahead(planned.members, i);
    const model::StepRow& row = step.plan.rows[i];
    Sequence& sequence = *planned.members[i];
    const bool has_result = result != end && result->slot == row.slot;  // rows that do not sample may have none
    if (row.sample) --sequence.pending;
    if (sequence.phase != SequencePhase::kDone && !sequence.is_void) {
      Quarantine::clear(sequence);
      apply_row(sequence, row, has_result ? result : nullptr, step.result);
    }
    if (has_result) ++result;
    if (--sequence.in_flight == 0) roster_.settle(sequence);
  }
  for (Sequence* sequence : planned.loading)
    if (--sequence->in_flight == 0) roster_.settle(*sequence);
}

// Whoever is in it goes on from what came back before, but for who is found guilty. A step that was posted after the one that failed and
// shares rows with it built on what that did not compute: if it fails as well, nobody is to blame.
void Scheduler::apply_failure(const Step& step, const PlannedStep& planned) {
  suspects_.clear();
  Sequence* guilty = nullptr;
  const auto is_void = [](const Sequence* sequence) { return sequence->is_void; };
  const bool built_on_failure = std::ranges::any_of(planned.members, is_void) || std::ranges::any_of(planned.loading, is_void);
  const std::optional<model::SlotId> named = row_at_fault(step.result.failure);
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
               guilty != nullptr ? " without request '" + guilty->id + "'" : "", describe(step.result.failure));
  if (guilty == nullptr) return;
  ++counters_.failed_rows;
  finish(*guilty, FinishReason::kError, internal_error("the model failed in a step: " + describe(step.result.failure)));
}

void Scheduler::count(const Step& step, const StepShape& shape) {
  if (step.plan.rows.empty()) return;
  ++counters_.steps;
  const double seconds = step.result.seconds;
  const double share = static_cast<double>(shape.prefill_tokens) / (shape.prefill_tokens + shape.decode_rows);
  counters_.prefill_seconds += seconds * share;
  counters_.decode_seconds += seconds * (1.0 - share);
  if (step.result.failure) return;
  counters_.prompt_tokens += static_cast<std::uint64_t>(shape.prefill_tokens);
  // A step that skipped rows was shorter than its shape says, one that moved blocks was longer.
  const bool all_ran = std::ranges::all_of(step.result.rows, [](const model::RowResult& row) { return row.ran; });
  if (!all_ran || step.plan.moves_blocks() || seconds <= 0.0) return;
  pace_.observe(shape, seconds);
  if (shape.prefill_tokens == 0) decode_rate_ += (shape.decode_rows / seconds - decode_rate_) * (decode_rate_ == 0.0 ? 1.0 : kRateWeight);
}

// Also for a sequence that has been preempted meanwhile: its token is right, whatever becomes of its blocks.
void Scheduler::apply_row(Sequence& sequence, const model::StepRow& row, const model::RowResult* result, const model::StepResult& step) {
  if (row.sample && result != nullptr && result->ran && result->finished && !result->sampled) {
    if (result->failure) ++counters_.failed_rows;
    finish(sequence, FinishReason::kError,
           internal_error(result->failure ? "choosing the next token failed: " + describe(result->failure)
                                          : "no token was left to choose from, by the request's rules or the model's logits"));
    return;
  }
  if (row.sample && (result == nullptr || !result->ran || !result->sampled)) {
    finish(sequence, FinishReason::kError, internal_error("the model gave no token for a running sequence"));
    return;
  }
  roster_.publish(sequence, row.position + row.count);
  if (sequence.awaits_prompt_logprobs()) report_prompt(sequence, row, result, step);
  if (row.sample) {
    accept(sequence, *result, step);
  } else if (sequence.stop.max_tokens == 0 && row.position + row.count == sequence.known()) {
    finish(sequence, FinishReason::kLength);
  }
}

// What was computed again after a preemption has been reported before.
void Scheduler::report_prompt(Sequence& sequence, const model::StepRow& row, const model::RowResult* result, const model::StepResult& step) {
  std::vector<PromptToken> tokens;
  if (sequence.reported == 0) tokens.push_back({sequence.tokens[0], std::nullopt, {}});
  const std::uint32_t count = result != nullptr ? result->scored_count : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t place = row.position + 1 + static_cast<std::int32_t>(i);
    if (place < sequence.reported) continue;
    const model::ScoredToken& scored = step.scored[result->scored_begin + i];
    tokens.push_back({scored.token, scored.logprob, top_of(scored, step)});
  }
  if (tokens.empty()) return;
  sequence.reported += static_cast<std::int32_t>(tokens.size());
  TokenStream& stream = sequence.ticket->stream();
  stream.push_prompt(std::move(tokens));
  touched_.push_back(&stream);
}

void Scheduler::accept(Sequence& sequence, const model::RowResult& row, const model::StepResult& step) {
  sequence.tokens.push_back(row.token);
  sequence.mirostat_mu = row.mirostat_mu;
  ++counters_.generated_tokens;
  TokenStream& stream = sequence.ticket->stream();
  stream.push(token_of(row, step));
  assert(row.finished || sequence.generated() < sequence.stop.max_tokens);
  if (row.finished) {
    finish(sequence, row.reason);
  } else {
    touched_.push_back(&stream);
  }
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  Finish event;
  event.reason = reason;
  event.usage.prompt_tokens = sequence.prompt_tokens;
  event.usage.completion_tokens = sequence.generated();
  event.usage.cached_tokens = sequence.cached_tokens.value_or(0);
  event.usage.queue_ms = sequence.queue_seconds.value_or(0.0) * 1e3;
  event.error = std::move(error);
  TokenStream& stream = sequence.ticket->stream();
  stream.finish(std::move(event));
  touched_.push_back(&stream);
  sequence.ticket->detach();
  sequence.ticket = nullptr;
  const bool is_cancelled = reason == FinishReason::kCancelled;
  ++(is_cancelled ? counters_.cancelled : counters_.finished);
  count_answer(sequence);
  roster_.retire(sequence, is_cancelled);
}

// Cut ones as well: they say how long an answer keeps the machine busy.
void Scheduler::count_answer(const Sequence& sequence) {
  if (sequence.generated() == 0) return;
  ++answered_;
  answer_tokens_ += static_cast<std::uint64_t>(sequence.generated());
}

void Scheduler::deliver() {
  for (TokenStream* stream : touched_) stream->deliver(*wakes_);
  touched_.clear();
}

bool Scheduler::cancel(std::string_view id) {
  Sequence* sequence = roster_.find(id);
  if (sequence == nullptr) return false;
  finish(*sequence, FinishReason::kCancelled);
  deliver();
  wake_.notify();
  return true;
}

void Scheduler::on_abandoned(Sequence& sequence, bool is_complete) {
  sequence.ticket = nullptr;
  ++(is_complete ? counters_.finished : counters_.cancelled);
  count_answer(sequence);
  roster_.retire(sequence, !is_complete);
  wake_.notify();  // its slot or blocks may be what another one waits for
}

void Scheduler::on_drained(Sequence& sequence) {
  roster_.resume(sequence);
  wake_.notify();
}

void Scheduler::begin_drain() {
  draining_ = true;
  wake_.notify();
}

asio::awaitable<bool> Scheduler::drained(std::chrono::steady_clock::time_point deadline) {
  drain_deadline_.expires_at(deadline);
  if (!has_ended()) co_await drain_deadline_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return roster_.empty();
}

void Scheduler::abort_remaining(const Error& reason) {
  draining_ = true;
  finish_all(reason);
  wake_.notify();
}

void Scheduler::finish_all(const Error& reason) {
  for (SequenceMap* map : roster_.all()) {
    for (auto at = map->begin(); at != map->end();) {
      Sequence& sequence = (at++)->second;  // finish() may destroy it
      if (sequence.phase != SequencePhase::kDone) finish(sequence, FinishReason::kCancelled, reason);
    }
  }
  deliver();
}

}  // namespace braid::sched
