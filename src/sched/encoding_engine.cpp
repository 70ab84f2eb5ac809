#include "sched/encoding_engine.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <utility>

namespace braid::sched {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::int32_t kStreamOfVector = 1;  // no tokens come

double seconds_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

// A text that waits or is in the pass. Its ticket is null once its client has gone.
struct EncodingEngine::Job {
  Job(GenerationRequest&& wish, const EncodingOptions& options, std::uint64_t serial)
      : request(std::move(wish)), arrival(Clock::now()), rank(arrival, request.priority, options.priority_ageing, serial) {}

  GenerationRequest request;
  Clock::time_point arrival;
  Rank rank;
  std::optional<double> queue_seconds;  // once it is in a pass
  TextTicket* ticket = nullptr;
};

class EncodingEngine::TextTicket final : public TokenSource {
 public:
  TextTicket(EncodingEngine& engine, std::shared_ptr<Job> job) : engine_(&engine), job_(std::move(job)), stream_(kStreamOfVector) {
    job_->ticket = this;
  }
  ~TextTicket() override { leave(); }

  std::optional<TokenEvent> try_next() override { return stream_.try_next(); }
  Signal& arrived() override { return stream_.arrived(); }
  void cancel() override {
    leave();
    stream_.close();
  }
  void complete() override { cancel(); }
  std::int32_t cached_tokens() const override { return 0; }
  double queue_ms() const override { return job_ ? job_->queue_seconds.value_or(0.0) * 1e3 : queue_ms_; }
  bool started() const override { return !job_ || job_->queue_seconds.has_value(); }

 private:
  friend EncodingEngine;

  void leave() {
    if (!job_) return;
    const std::shared_ptr<Job> job = detach();
    engine_->leave(*job);
  }
  std::shared_ptr<Job> detach() {
    queue_ms_ = queue_ms();
    job_->ticket = nullptr;
    return std::exchange(job_, nullptr);
  }

  EncodingEngine* engine_;
  std::shared_ptr<Job> job_;  // until it has ended
  double queue_ms_ = 0.0;
  TokenStream stream_;
};

void EncodingEngine::Executor::execute(const step::StepPlan&, step::StepResult&) {
  if (options_.before_steps) options_.before_steps();
  const Clock::time_point until = Clock::now() + options_.most_of_step;
  if (!pass) pass = encoder_.begin(std::move(texts));
  do {
    is_done = !pass->advance();
  } while (!is_done && Clock::now() < until);
}

EncodingEngine::EncodingEngine(asio::io_context& loop, ComputeStrand& strand, step::Encoder& encoder, EncodingOptions options)
    : options_(std::move(options)), wakes_(std::make_shared<WakeList>(loop)), executor_(encoder, options_), drain_deadline_(loop),
      lane_(
          strand, executor_, [this] { on_returned(); }, [this] { pump(); }) {}

EncodingEngine::~EncodingEngine() {
  const Error reason{ErrorCode::kDraining, "the server is shutting down", {}};
  abort_remaining(reason);
  fail_running(reason);
}

Error EncodingEngine::overloaded(std::size_t place) const {
  const double tokens_per_second = counters_.prefill_tokens_per_second;
  std::size_t tokens = 0;
  for (const auto& [rank, job] : waiting_) tokens += job->request.prompt.size();
  const double seconds = tokens_per_second > 0.0 ? static_cast<double>(tokens) / tokens_per_second : 1.0;
  return {.code = ErrorCode::kOverloaded,
          .message = fmt::format("{} texts wait already; try again later", waiting_.size()),
          .param = {},
          .retry_after = std::chrono::seconds(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(seconds)), 1, 3600)),
          .queue_position = static_cast<std::uint32_t>(place)};
}

Result<void> EncodingEngine::check_queue(std::size_t requests, std::int32_t) {
  const auto most = static_cast<std::size_t>(options_.max_waiting);
  if (requests > most) return invalid_argument(fmt::format("{} texts are given at once, and this server's queue holds {}", requests, most));
  if (waiting_.size() + requests <= most) return {};
  ++counters_.refused;
  return overloaded(waiting_.size() + 1);
}

Result<Ticket> EncodingEngine::submit(GenerationRequest request) {
  if (refusal_) return *refusal_;
  if (request.pooling == Pooling::kNone)
    return invalid_argument("this model reads texts and generates none: ask for a vector or for scores", "model");
  if (request.prompt.size() > static_cast<std::size_t>(options_.context_length))
    return Error{ErrorCode::kContextLength,
                 fmt::format("the text has {} tokens, and the model reads {}", request.prompt.size(), options_.context_length),
                 {}};
  for (const TokenId token : request.prompt)
    if (token < 0 || token >= options_.vocabulary)
      return invalid_argument(fmt::format("the text has the token {}, and the model knows {}", token, options_.vocabulary));
  if (waiting_.size() >= static_cast<std::size_t>(options_.max_waiting)) {
    ++counters_.refused;
    return overloaded(waiting_.size() + 1);
  }
  auto job = std::make_shared<Job>(std::move(request), options_, next_serial_++);
  auto ticket = std::make_unique<TextTicket>(*this, job);
  waiting_.emplace(job->rank, std::move(job));
  ++counters_.submitted;
  pump();
  return ticket;
}

void EncodingEngine::take_texts() {
  std::size_t tokens = 0;
  const Clock::time_point now = Clock::now();
  while (!waiting_.empty()) {
    const std::shared_ptr<Job>& next = waiting_.begin()->second;
    tokens += next->request.prompt.size();
    if (!running_.empty() && tokens > static_cast<std::size_t>(options_.most_tokens)) break;
    next->queue_seconds = seconds_between(next->arrival, now);
    counters_.queue_wait.observe(*next->queue_seconds);
    const GenerationRequest& request = next->request;
    executor_.texts.push_back(
        {request.prompt, request.second_text, request.pooling, request.pooled_output, request.task, request.adapter.lease});
    running_.push_back(next);
    waiting_.erase(waiting_.begin());
  }
}

// One step is out at a time, so that the pass has one owner.
void EncodingEngine::pump() {
  if (!lane_.idle()) return;
  if (running_.empty() && waiting_.empty()) {
    lane_.pass();
    return;
  }
  if (!lane_.take_turn()) return;
  if (running_.empty()) take_texts();
  lane_.next_plan();
  lane_.post();
}

void EncodingEngine::on_returned() {
  std::exception_ptr failure;
  while (const Step* step = lane_.returned()) {
    ++counters_.steps;
    counters_.prefill_seconds += step->result.seconds;
    pass_seconds_ += step->result.seconds;
    failure = step->result.failure;
    lane_.pop();
  }
  const auto is_abandoned = [](const auto& job) { return job->ticket == nullptr; };
  if (failure || abort_reason_ || executor_.is_done || std::ranges::all_of(running_, is_abandoned)) {
    const std::vector<std::shared_ptr<Job>> ended = std::exchange(running_, {});
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < ended.size(); ++i) {
      tokens += ended[i]->request.prompt.size();
      if (is_abandoned(ended[i])) continue;
      if (failure) {
        fail(*ended[i], FinishReason::kError, {ErrorCode::kInternal, "the computation failed inside the server", {}});
      } else if (executor_.is_done) {
        finish(*ended[i], executor_.pass->take(i));
      } else {
        fail(*ended[i], FinishReason::kCancelled, *abort_reason_);
      }
    }
    if (executor_.is_done && pass_seconds_ > 0.0) {
      counters_.prompt_tokens += tokens;
      counters_.step_tokens.observe(tokens);
      counters_.prefill_tokens_per_second = static_cast<double>(tokens) / pass_seconds_;
    }
    executor_.pass.reset();
    executor_.texts.clear();
    executor_.is_done = false;
    pass_seconds_ = 0.0;
  }
  pump();
  if (refusal_ && idle()) drain_deadline_.cancel();
}

void EncodingEngine::finish(Job& job, std::vector<float> vector) {
  if (vector.empty()) return fail(job, FinishReason::kError, {ErrorCode::kInternal, "the model's numbers for this text are none", {}});
  TextTicket& ticket = *job.ticket;
  ticket.detach();
  Finish finish{.reason = FinishReason::kStop, .usage = {}, .error = {}};
  finish.usage.prompt_tokens = static_cast<std::int32_t>(job.request.prompt.size());
  finish.usage.queue_ms = job.queue_seconds.value_or(0.0) * 1e3;
  ticket.stream_.push_vector(std::move(vector));
  ticket.stream_.finish(std::move(finish));
  ticket.stream_.deliver(*wakes_);
  ++counters_.finished;
}

void EncodingEngine::fail(Job& job, FinishReason reason, const Error& error) {
  TextTicket& ticket = *job.ticket;
  ticket.detach();
  reason == FinishReason::kError ? ++counters_.failed_rows : ++counters_.cancelled;
  Finish finish{.reason = reason, .usage = {}, .error = error};
  finish.usage.prompt_tokens = static_cast<std::int32_t>(job.request.prompt.size());
  ticket.stream_.finish(std::move(finish));
  ticket.stream_.deliver(*wakes_);
}

void EncodingEngine::remove_waiting(const Job& job) { waiting_.erase(job.rank); }

// What is in a pass is computed for nothing, unless nobody is left who wants it.
void EncodingEngine::leave(Job& job) {
  ++counters_.cancelled;
  if (!job.queue_seconds) remove_waiting(job);
  if (refusal_ && idle()) drain_deadline_.cancel();
}

bool EncodingEngine::cancel(std::string_view id) {
  const auto has_id = [id](const std::shared_ptr<Job>& job) { return job->ticket != nullptr && job->request.id == id; };
  std::shared_ptr<Job> found;
  for (const auto& [rank, job] : waiting_)
    if (has_id(job)) found = job;
  for (const auto& job : running_)
    if (has_id(job)) found = job;
  if (id.empty() || !found) return false;
  if (!found->queue_seconds) remove_waiting(*found);
  fail(*found, FinishReason::kCancelled, {ErrorCode::kCancelled, "the request was aborted", {}});
  if (refusal_ && idle()) drain_deadline_.cancel();
  return true;
}

void EncodingEngine::end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason) {
  std::vector<std::shared_ptr<Job>> ended;
  for (const auto& [rank, job] : waiting_) ended.push_back(job);
  ended.insert(ended.end(), running_.begin(), running_.end());
  std::erase_if(ended, [&](const auto& job) { return job->ticket == nullptr || !is_such(job->request.adapter); });
  for (const auto& job : ended) {
    if (!job->queue_seconds) remove_waiting(*job);
    fail(*job, FinishReason::kCancelled, reason);
  }
  if (refusal_ && idle()) drain_deadline_.cancel();
}

EngineStats EncodingEngine::stats() const {
  EngineStats stats = counters_;
  stats.running_step_seconds = lane_.running_seconds();
  for (const auto& [rank, job] : waiting_) {
    ++stats.waiting;
    ++(job->request.priority < 0 ? stats.waiting_better : job->request.priority > 0 ? stats.waiting_worse : stats.waiting_normal);
  }
  stats.prefilling = static_cast<std::uint32_t>(running_.size());
  return stats;
}

std::vector<SequenceSnapshot> EncodingEngine::sequences(std::size_t limit) const {
  std::vector<SequenceSnapshot> snapshots;
  const auto add = [&](const Job& job, const char* phase, std::uint32_t place) {
    if (snapshots.size() >= limit || job.ticket == nullptr) return;
    snapshots.push_back({.id = job.request.id,
                         .phase = phase,
                         .priority = job.request.priority,
                         .prompt_tokens = static_cast<std::int32_t>(job.request.prompt.size()),
                         .queue_position = place});
  };
  for (const auto& job : running_) add(*job, "prefill", 0);
  std::uint32_t place = 0;
  for (const auto& [rank, job] : waiting_) add(*job, "waiting", ++place);
  return snapshots;
}

asio::awaitable<bool> EncodingEngine::drained(Clock::time_point until) {
  drain_deadline_.expires_at(until);
  if (!idle()) co_await drain_deadline_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return idle();
}

void EncodingEngine::abort_remaining(const Error& reason) {
  refusal_ = reason;
  abort_reason_ = reason;
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& [rank, job] : waiting) fail(*job, FinishReason::kCancelled, reason);
  if (!lane_.idle()) return;  // its pass's texts are answered when the step is back
  fail_running(reason);
}

void EncodingEngine::fail_running(const Error& reason) {
  for (const auto& job : std::exchange(running_, {}))
    if (job->ticket != nullptr) fail(*job, FinishReason::kCancelled, reason);
}

}  // namespace braid::sched
