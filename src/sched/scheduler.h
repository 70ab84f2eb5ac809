// The engine: continuous batching on one coroutine.
#pragma once

#include "braid/engine.h"
#include "braid/signal.h"
#include "sched/batch_planner.h"
#include "sched/draft_pace.h"
#include "sched/options.h"
#include "sched/prefill_pace.h"
#include "sched/quarantine.h"
#include "sched/recent_answers.h"
#include "sched/roster.h"
#include "sched/stall_watch.h"
#include "sched/strand_lane.h"
#include "sched/ticket.h"
#include "sched/wake_list.h"
#include "step/step.h"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::sched {

// Runs from construction until it was told to drain and nothing is left; the io_context has work until then. Loop only, the
// constructor included. Destroy it when the io_context has stopped running and before the io_context; tickets may outlive it.
//
// Each turn of the coroutine: apply the results that are back, plan and post until two steps are out, then wake the consumers. So the
// strand always has its next step while consumers write. Between turns it sleeps until a step returns, a request comes or goes, or a
// full stream has room again. A cancelled sequence leaves in the very call that cancels it: no plan made after that contains it.
class Scheduler final : public Engine, private TicketListener {
 public:
  // `strand`, `executor` and `store` (null: no disk tier) outlive the scheduler. `options` have no fault (find_fault).
  Scheduler(boost::asio::io_context& loop, ComputeStrand& strand, step::StepExecutor& executor, const SchedulerOptions& options,
            store::RecordStore* store = nullptr);
  // Alone, on a strand of its own.
  Scheduler(boost::asio::io_context& loop, step::StepExecutor& executor, const SchedulerOptions& options,
            store::RecordStore* store = nullptr);
  ~Scheduler() override;

  // Engine. A GenerationRequest::id in use is refused; requests with an empty id cannot be looked up.
  Result<Ticket> submit(GenerationRequest request) override;
  Result<void> check_queue(std::size_t requests, std::int32_t priority) override;
  std::shared_ptr<const void> reserve() override;
  EngineStats stats() const override;
  bool cancel(std::string_view id) noexcept override;
  std::int32_t forget_prefixes() override { return roster_.forget_unused(); }
  std::vector<SequenceSnapshot> sequences(std::size_t limit) const override;

  // Lookup by GenerationRequest::id: where it is, or nullopt when unknown or finished.
  std::optional<SequencePhase> find(std::string_view id) const;

  // The pool is to have so many blocks, at most as many as at first and no fewer than the sequences that are there may need: returns how
  // many. Sequences give theirs up as in a preemption. `on_given_back` is called when memory has been given back.
  std::int32_t resize(std::int32_t blocks, std::function<void()> on_given_back);

  // No new work from now on: submit() answers kDraining. What was accepted goes on, and what belongs to a reservation is still taken.
  void begin_drain();
  // When all has ended after begin_drain(), what only the pool has goes to the store, as far as there is time: others will ask for it.
  void give_away_at_end() { gives_away_ = true; }
  // After begin_drain(): true when all that was accepted or reserved has ended, false when the deadline came first. One caller at a time.
  boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point deadline);
  // After it has drained: returns when nothing of it is left on the loop, so that it may be destroyed while the loop goes on.
  boost::asio::awaitable<void> closed();
  // All that wait or run go on with what `newer` gives for what they use, and compute what they know again; nothing: they stay with it. So
  // does who has been told a part of what is said of its prompt, which is of one revision.
  void change_weights(const std::function<std::optional<AdapterUse>(const AdapterUse&)>& newer);
  // Every stream that uses such a thing ends with Finish{kCancelled, reason}; new requests are taken.
  void end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason);
  // Drains at once: every remaining stream ends with Finish{kCancelled, reason}.
  void abort_remaining(const Error& reason);

 private:
  // Of `own_strand`, if there is one, or else `shared`.
  Scheduler(boost::asio::io_context& loop, std::unique_ptr<ComputeStrand> own_strand, ComputeStrand* shared, step::StepExecutor& executor,
            const SchedulerOptions& options, store::RecordStore* store);

  // Its coroutines, whose ends may come when it is gone.
  struct Coroutines {
    std::uint32_t running = 0;
    Signal ended;
  };

  // What the rows of a step that came back have given, added up on the way through them.
  struct GivenByStep {
    double tokens = 0.0;
    bool by_all = true;  // none was skipped
    void add(const step::RowResult& row) {
      tokens += row.sampled ? 1.0 + row.more_count : 0.0;
      by_all = by_all && row.ran;
    }
  };

  void spawn(boost::asio::io_context& loop, boost::asio::awaitable<void> coroutine);
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> tend_disk();
  bool has_work() const;
  bool has_ended() const;
  void turn() noexcept;
  bool post_next();
  bool plan_next();
  void begin_drafts();
  bool add_alone(Sequence& sequence, PlannedStep& step);
  bool post(PlannedStep& step);
  bool unhold(bool force);
  void apply(const Step& step);
  void apply_failure(const Step& step, const PlannedStep& planned);
  void count(const Step& step, const StepShape& planned, const GivenByStep& given);
  void count_drafts(Sequence& sequence, const step::RowResult& row, const step::StepResult& step);
  inline void apply_row(Sequence& sequence, const step::StepRow& row, const step::RowResult* result, const step::StepResult& step);
  void report_prompt(Sequence& sequence, const step::StepRow& row, const step::RowResult* result, const step::StepResult& step);
  void give_vector(Sequence& sequence, const step::RowResult& row, const step::StepResult& step);
  void accept_drafted(Sequence& sequence, const step::RowResult& row, const step::StepResult& step);
  template <class Answered>
  void take_token(Sequence& sequence, const Answered& answered, const step::StepResult& step);
  void end_without_token(Sequence& sequence, const step::RowResult* result);
  inline void accept(Sequence& sequence, const step::RowResult& row, const step::StepResult& step);
  void finish(Sequence& sequence, FinishReason reason, std::optional<Error> error = std::nullopt);
  template <class Which>
  void finish_those(const Which& which, const Error& reason) noexcept;
  void finish_all(const Error& reason) noexcept;
  void deliver();
  void count_groups(EngineStats& stats) const;
  void count_answer(const Sequence& sequence);
  void learn(const Sequence& sequence);
  Error overloaded(std::int32_t priority);
  void drop_slow_reader(Sequence& sequence, const std::string& reason);

  void on_abandoned(Sequence& sequence, bool is_complete) noexcept override;
  void on_drained(Sequence& sequence) noexcept override;

  SchedulerOptions options_;
  BatchPlanner planner_;
  PrefillPace pace_;
  DraftPace draft_pace_;
  RecentAnswers recent_answers_;
  Roster roster_;
  Quarantine quarantine_;
  EngineStats counters_;
  std::array<PlannedStep, ComputeStrand::kMaxPosted> posted_;  // by plan id, modulo its size
  std::vector<Sequence*> full_;
  std::vector<Sequence*> suspects_;  // reused, like those let go
  std::vector<Sequence*> unheld_;
  const std::shared_ptr<WakeList> wakes_;
  std::vector<TokenStream*> touched_;  // to be delivered at the end of the turn; no consumer runs before
  double decode_rate_ = 0.0;           // tokens per second of steps that only decode; 0: not measured
  std::uint64_t answered_ = 0;         // sequences that ran to their end, and the tokens they gave
  std::uint64_t answer_tokens_ = 0;
  std::optional<std::chrono::seconds> time_to_drain_;  // of this turn
  StallWatch stall_watch_;
  std::function<void()> on_given_back_;
  bool draining_ = false;
  bool gives_away_ = false;                // at its end
  bool is_overdue_ = false;                // it ends with its last step, whatever is still to be written
  bool aborted_ = false;                   // while draining
  std::weak_ptr<const void> reservation_;  // shared by all who have one
  bool warned_of_drafts_ = false;
  boost::asio::steady_timer drain_deadline_;
  boost::asio::steady_timer disk_timer_;
  bool has_ended_ = false;  // its coroutine has
  Signal wake_;
  const std::shared_ptr<Coroutines> coroutines_ = std::make_shared<Coroutines>();
  const std::shared_ptr<Scheduler*> self_ = std::make_shared<Scheduler*>(this);  // asked by reservations, which may outlive it
  const std::unique_ptr<ComputeStrand> own_strand_;
  StrandLane lane_;  // last: its step has ended before anything that this names is destroyed
};

}  // namespace braid::sched
