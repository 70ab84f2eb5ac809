#include "sched/scheduler.h"

#include "sched/limits.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::sched {

namespace {

namespace asio = boost::asio;

constexpr int kPruneSeconds = 60;

}  // namespace

Scheduler::Scheduler(asio::io_context& loop, ComputeStrand& strand, step::StepExecutor& executor, const SchedulerOptions& options,
                     store::RecordStore* store)
    : Scheduler(loop, nullptr, &strand, executor, options, store) {}

Scheduler::Scheduler(asio::io_context& loop, step::StepExecutor& executor, const SchedulerOptions& options, store::RecordStore* store)
    : Scheduler(loop, std::make_unique<ComputeStrand>(loop), nullptr, executor, options, store) {}

Scheduler::Scheduler(asio::io_context& loop, std::unique_ptr<ComputeStrand> own_strand, ComputeStrand* shared, step::StepExecutor& executor,
                     const SchedulerOptions& options, store::RecordStore* store)
    : options_(options), planner_(options), pace_(options.prefill_slice_ms * 1e-3, options.target_itl_ms * 1e-3),
      draft_pace_(options.draft_tokens, options.draft_always), roster_(options, store, [this] { wake_.notify(); }),
      wakes_(std::make_shared<WakeList>(loop)),
      stall_watch_(
          loop, options, roster_, [this](Sequence& sequence, const std::string& reason) { drop_slow_reader(sequence, reason); },
          [this] {
  deliver();
  wake_.notify();
          }),
drain_deadline_(loop), disk_timer_(loop), own_strand_(std::move(own_strand)),
lane_(
    own_strand_ ? *own_strand_ : *shared, executor, [this] { wake_.notify_now(); }, [this] { wake_.notify(); }) {
  assert(!find_fault(options));
  spawn(loop, run());
  if (roster_.disk_tier() != nullptr) spawn(loop, tend_disk());
}

void Scheduler::spawn(asio::io_context& loop, asio::awaitable<void> coroutine) {
  ++coroutines_->running;
  asio::co_spawn(loop, std::move(coroutine), [coroutines = coroutines_](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
    --coroutines->running;
    coroutines->ended.notify();
  });
}

asio::awaitable<void> Scheduler::closed() {
  while (coroutines_->running > 0) co_await coroutines_->ended.wait();
}

Scheduler::~Scheduler() { finish_all({ErrorCode::kDraining, "the server is shutting down", {}}); }

Result<Ticket> Scheduler::submit(GenerationRequest request) {
  if (draining_ && (aborted_ || request.reservation == nullptr))
    return Error{ErrorCode::kDraining, "the server is shutting down and takes no new requests", {}};
  const Result<std::int32_t> room = answer_room(request, options_);
  if (!room) return room.error();
  if (!request.id.empty() && roster_.find(request.id) != nullptr)
    return invalid_argument(fmt::format("a request with the id {} is running already", request.id), "id");
  const Result<void> fits = request.reservation != nullptr ? Result<void>() : check_queue(1, request.priority);
  if (!fits) return fits.error();
  TicketListener& listener = *this;
  auto ticket = std::make_unique<SequenceTicket>(listener, options_.stream_capacity);
  Sequence& sequence = roster_.enqueue(std::move(request), *room, std::chrono::steady_clock::now());
  ticket->attach(sequence);
  if (options_.draft_tokens > 0 && sequence.shares_answers())
    sequence.recent = recent_answers_.of(sequence.request->client, sequence.request->cache_salt);
  ++counters_.submitted;
  roster_.prefetch(sequence);
  wake_.notify();
  return Ticket(std::move(ticket));
}

Result<void> Scheduler::check_queue(std::size_t requests, std::int32_t priority) {
  const auto most = static_cast<std::size_t>(std::max(options_.max_waiting, 1));
  if (requests > most)
    return invalid_argument(fmt::format("{} answers at once are more than the queue ever takes, which is {}", requests, most));
  if (roster_.queue().size() + requests <= static_cast<std::size_t>(options_.max_waiting)) return {};
  ++counters_.refused;
  return overloaded(priority);
}

std::shared_ptr<const void> Scheduler::reserve() {
  if (auto known = reservation_.lock()) return known;
  std::shared_ptr<const void> made(self_.get(), [self = std::weak_ptr(self_)](const void*) {
    if (const auto scheduler = self.lock()) (*scheduler)->wake_.notify();
  });
  reservation_ = made;
  return made;
}

// How long all that is there will take is looked up once a turn, however many are refused.
Error Scheduler::overloaded(std::int32_t priority) {
  if (!time_to_drain_) {
    const double answer = answered_ > 0 ? static_cast<double>(answer_tokens_) / static_cast<double>(answered_) : 0.0;
    const double share = 1.0 / lane_.sharers();
    time_to_drain_ = time_to_drain(roster_, {share * pace_.tokens_per_second(), share * decode_rate_, answer});
  }
  const std::size_t position = roster_.queue().place_of(priority, std::chrono::steady_clock::now());
  Error error{ErrorCode::kOverloaded,
              fmt::format("{} requests are waiting already; this one would have been number {}; try again in about {} s",
                          roster_.queue().size(), position, time_to_drain_->count()),
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

bool Scheduler::has_work() const { return !roster_.empty() || (!aborted_ && !reservation_.expired()); }

// What was to be saved is on disk, too.
bool Scheduler::has_ended() const {
  if (has_work()) return false;
  const DiskTier* disk = roster_.disk_tier();
  if (disk == nullptr) return true;
  if (is_overdue_) return lane_.idle();
  return (!gives_away_ || roster_.has_given_away()) && lane_.idle() && !disk->has_saves() && disk->store().idle();
}

asio::awaitable<void> Scheduler::tend_disk() {
  DiskTier& disk = *roster_.disk_tier();
  const std::chrono::milliseconds pause = std::min(std::chrono::milliseconds(1'000), options_.restore_patience);
  for (int second = 0;; ++second) {
    disk_timer_.expires_after(pause);
    const auto [error] = co_await disk_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error || has_ended_) co_return;
    if (roster_.give_up_restoring(std::chrono::steady_clock::now() - options_.restore_patience)) wake_.notify();
    if (second % kPruneSeconds == 0) disk.store().tend();
  }
}

void Scheduler::turn() noexcept {
  time_to_drain_.reset();
  while (const Step* step = lane_.returned()) {
    apply(*step);
    const bool gave_back = !step->plan.given_back.empty();
    lane_.pop();
    if (gave_back && on_given_back_) on_given_back_();
  }
  while (lane_.take_turn()) {
    if (post_next()) continue;
    lane_.pass();
    break;
  }
  deliver();
  stall_watch_.look();
}

void Scheduler::drop_slow_reader(Sequence& sequence, const std::string& reason) {
  ++counters_.slow_readers_dropped;
  spdlog::warn("request '{}' ended: {}", sequence.request->id, reason);
  finish(sequence, FinishReason::kCancelled, Error{ErrorCode::kCancelled, reason, {}});
}

bool Scheduler::post_next() {
  unhold(false);
  if (plan_next()) return true;
  // Those who are held may have what the others lack.
  return quarantine_.is_active() && lane_.idle() && unhold(true) && plan_next();
}

bool Scheduler::unhold(bool force) {
  unheld_.clear();
  quarantine_.unhold(roster_.batch(), force, unheld_);
  for (Sequence* sequence : unheld_) roster_.unhold(*sequence);
  return !unheld_.empty();
}

bool Scheduler::plan_next() {
  pace_.share_with(lane_.sharers());
  step::StepPlan& plan = lane_.next_plan();
  PlannedStep& step = posted_[plan.id % posted_.size()];
  step.plan = &plan;
  step.members.clear();
  step.loading.clear();
  step.checked.clear();
  step.shape = {};

  if (draining_ && gives_away_ && !is_overdue_ && !has_work()) roster_.give_away();
  roster_.restart_long();
  if (Sequence* suspect = quarantine_.next_alone(roster_.batch()); suspect != nullptr && add_alone(*suspect, step)) return post(step);

  counters_.preemptions += static_cast<std::uint64_t>(roster_.shrink(plan.given_back));
  counters_.preemptions += static_cast<std::uint64_t>(roster_.make_room());
  full_.clear();
  if (options_.draft_tokens > 0) begin_drafts();
  const bool all_decode = planner_.add_decodes(roster_.batch(), step, draft_pace_, full_);
  const bool all_have_blocks = roster_.extend_prefills() && all_decode;
  for (Sequence* sequence : full_) roster_.stall(*sequence);
  if (all_have_blocks && !quarantine_.is_active())
    roster_.admit(pace_.tokens_per_second(), pace_.most_rows(static_cast<std::size_t>(options_.max_batch)));
  roster_.restore(plan, step.loading);
  planner_.add_prefills(roster_.batch(), step, pace_);
  return post(step);
}

// Who waits for a place gets it sooner where nothing is computed in vain.
void Scheduler::begin_drafts() {
  const StepShape rows = BatchPlanner::decode_shape(roster_.batch());
  const bool is_full = rows.decode_rows >= options_.max_batch && roster_.queue().size() > 0;
  draft_pace_.begin_step(pace_.cost(), rows, is_full);
}

// So that it is seen whether a step of its row alone throws. False when it has no block for that.
bool Scheduler::add_alone(Sequence& sequence, PlannedStep& step) {
  sequence.alone_after.reset();
  return planner_.add_prefill(sequence, step, pace_.slice_tokens({}, sequence.progress.planned())) > 0;
}

// With what is to be compared and saved before anybody writes to it.
bool Scheduler::post(PlannedStep& step) {
  step::StepPlan& plan = *step.plan;
  roster_.add_checks(plan, step.checked);
  if (DiskTier* disk = roster_.disk_tier()) disk->complete(plan);
  if (plan.rows.empty() && !plan.moves_blocks()) return false;
  lane_.post();
  return true;
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, std::optional<Error> error) {
  Finish event;
  event.reason = reason;
  event.usage.prompt_tokens = sequence.prompt_tokens;
  event.usage.completion_tokens = sequence.generated();
  event.usage.cached_tokens = sequence.cached_tokens.value_or(0);
  event.usage.accepted_drafts = sequence.drafts.accepted;
  event.usage.rejected_drafts = sequence.drafts.rejected;
  event.usage.weight_changes = sequence.weight_changes;
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
  if (!is_cancelled && reason != FinishReason::kError) learn(sequence);
  quarantine_.forget(sequence);
  roster_.remove(sequence, is_cancelled);
}

// Cut ones as well: they say how long an answer keeps the machine busy.
void Scheduler::count_answer(const Sequence& sequence) {
  if (sequence.generated() == 0) return;
  ++answered_;
  answer_tokens_ += static_cast<std::uint64_t>(sequence.generated());
}

void Scheduler::learn(const Sequence& sequence) {
  if (options_.draft_tokens == 0 || !sequence.shares_answers()) return;
  const auto answer = std::span(sequence.tokens).subspan(static_cast<std::size_t>(sequence.prompt_tokens));
  recent_answers_.add(sequence.request->client, sequence.request->cache_salt, answer);
}

void Scheduler::deliver() {
  for (TokenStream* stream : touched_) stream->deliver(*wakes_);
  touched_.clear();
}

bool Scheduler::cancel(std::string_view id) noexcept {
  Sequence* sequence = roster_.find(id);
  if (sequence == nullptr) return false;
  finish(*sequence, FinishReason::kCancelled);
  deliver();
  wake_.notify();
  return true;
}

void Scheduler::on_abandoned(Sequence& sequence, bool is_complete) noexcept {
  sequence.ticket = nullptr;
  ++(is_complete ? counters_.finished : counters_.cancelled);
  count_answer(sequence);
  if (is_complete) learn(sequence);
  roster_.remove(sequence, !is_complete);
  wake_.notify();  // its slot or blocks may be what another one waits for
}

void Scheduler::on_drained(Sequence& sequence) noexcept {
  roster_.resume(sequence);
  wake_.notify();
}

std::int32_t Scheduler::resize(std::int32_t blocks, std::function<void()> on_given_back) {
  options_.blocks = roster_.resize(blocks);
  on_given_back_ = std::move(on_given_back);
  wake_.notify();
  return options_.blocks;
}

void Scheduler::begin_drain() {
  draining_ = true;
  wake_.notify();
}

asio::awaitable<bool> Scheduler::drained(std::chrono::steady_clock::time_point deadline) {
  drain_deadline_.expires_at(deadline);
  if (!has_ended()) co_await drain_deadline_.async_wait(asio::as_tuple(asio::use_awaitable));
  if (has_work()) co_return false;
  is_overdue_ = gives_away_;  // what is still to be written, to a store that may hang, is nobody's answer
  wake_.notify();
  co_return true;
}

void Scheduler::change_weights(const std::function<std::optional<AdapterUse>(const AdapterUse&)>& newer) {
  std::vector<Sequence*> all;  // who is preempted moves to another map
  for (SequenceMap* map : roster_.all())
    for (auto& [rank, sequence] : *map)
      if (sequence.phase != SequencePhase::kDone && !sequence.has_told_of_prompt()) all.push_back(&sequence);
  for (Sequence* sequence : all) {
    std::optional<AdapterUse> next = newer(sequence->current_use());
    if (!next) continue;
    quarantine_.forget(*sequence);
    sequence->held = false;
    roster_.change_weights(*sequence, std::move(*next));
  }
  wake_.notify();
}

void Scheduler::end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason) {
  finish_those([&](const Sequence& sequence) { return is_such(sequence.current_use()); }, reason);
  wake_.notify();
}

void Scheduler::abort_remaining(const Error& reason) {
  draining_ = true;
  aborted_ = true;
  is_overdue_ = gives_away_;
  finish_all(reason);
  wake_.notify();
}

template <class Which>
void Scheduler::finish_those(const Which& which, const Error& reason) noexcept {
  for (SequenceMap* map : roster_.all()) {
    for (auto at = map->begin(); at != map->end();) {
      Sequence& sequence = (at++)->second;  // finish() may destroy it
      if (sequence.phase != SequencePhase::kDone && which(sequence)) finish(sequence, FinishReason::kCancelled, reason);
    }
  }
  deliver();
}

void Scheduler::finish_all(const Error& reason) noexcept {
  finish_those([](const Sequence&) { return true; }, reason);
}

}  // namespace braid::sched
