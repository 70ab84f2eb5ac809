// The engine of a model that reads whole texts: they wait in a queue, some of them share a pass, and the pass is left after a few
// milliseconds, so that nobody else's next token waits for more than that.
#pragma once

#include "braid/engine.h"
#include "sched/compute_strand.h"
#include "sched/rank.h"
#include "sched/strand_lane.h"
#include "sched/token_stream.h"
#include "sched/wake_list.h"
#include "step/encoder.h"
#include "step/step.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::sched {

struct EncodingOptions {
  std::int32_t context_length = 0;                                     // tokens of a text
  std::int64_t vocabulary = std::numeric_limits<std::int32_t>::max();  // ids that the model knows; a tokenizer may have more
  std::int32_t max_waiting = 16384;                                    // texts not yet in a pass; the next one is refused with kOverloaded
  std::chrono::milliseconds priority_ageing{10'000};                   // as SchedulerOptions::priority_ageing
  std::int32_t most_tokens = 2048;                                     // of the texts that share a pass; a longer one has it for itself
  std::chrono::microseconds most_of_step{5'000};                       // of the strand's time, before others have their turn
  std::function<void()> before_steps = {};                             // if any, called on the strand when a step begins
};

// Loop only. Strand, encoder and loop outlive it; tickets may not.
class EncodingEngine final : public Engine {
 public:
  EncodingEngine(boost::asio::io_context& loop, ComputeStrand& strand, step::Encoder& encoder, EncodingOptions options);
  ~EncodingEngine() override;

  // kInvalidArgument for a request that wants an answer, or nothing; kContextLength; kOverloaded; kDraining.
  Result<Ticket> submit(GenerationRequest request) override;
  Result<void> check_queue(std::size_t requests, std::int32_t priority) override;
  EngineStats stats() const override;
  bool cancel(std::string_view id) override;
  // Whoever uses such adapters, in a pass or not.
  void end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason);
  std::vector<SequenceSnapshot> sequences(std::size_t limit) const override;

  void begin_drain() { refusal_ = Error{ErrorCode::kDraining, "the server is shutting down", {}}; }
  // After that: true when all that was accepted has ended, false when the deadline came first.
  boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point until);
  void abort_remaining(const Error& reason);

 private:
  struct Job;
  class TextTicket;

  // Of the strand while a step is out, of the loop otherwise.
  class Executor final : public step::StepExecutor {
   public:
    Executor(step::Encoder& encoder, const EncodingOptions& options) : encoder_(encoder), options_(options) {}
    void execute(const step::StepPlan& plan, step::StepResult& result) override;

    std::vector<step::EncoderText> texts;  // of a pass that is to begin
    std::unique_ptr<step::EncoderPass> pass;
    bool is_done = false;

   private:
    step::Encoder& encoder_;
    const EncodingOptions& options_;
  };

  void pump();
  void take_texts();
  void on_returned();
  void finish(Job& job, std::vector<float> vector);
  void fail(Job& job, FinishReason reason, const Error& error);
  void fail_running(const Error& reason);
  void leave(Job& job);
  void remove_waiting(const Job& job);
  Error overloaded(std::size_t place) const;
  bool idle() const { return waiting_.empty() && running_.empty() && lane_.idle(); }

  const EncodingOptions options_;
  std::map<Rank, std::shared_ptr<Job>> waiting_;
  std::vector<std::shared_ptr<Job>> running_;  // in the order of the pass's texts
  std::uint64_t next_serial_ = 0;
  const std::shared_ptr<WakeList> wakes_;
  EngineStats counters_;
  double pass_seconds_ = 0.0;  // of the pass at hand
  Executor executor_;
  boost::asio::steady_timer drain_deadline_;
  std::optional<Error> refusal_;       // of new work
  std::optional<Error> abort_reason_;  // of what is left
  StrandLane lane_;                    // last: its step has ended before anything that it names is destroyed
};

}  // namespace braid::sched
