#include "net/training/run_job.h"

#include "braid/adapters.h"
#include "net/training/fitting.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <spdlog/spdlog.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace braid::net::training {
namespace {

namespace asio = boost::asio;

constexpr std::int32_t kLowestPriority = 100;
constexpr std::size_t kTextsAtOnce = 4;

Error replaced() {
  return {ErrorCode::kCancelled, "the weights of the model were replaced while the job read its texts: start it again", ""};
}

Error stopped() { return {ErrorCode::kCancelled, "the job was cancelled", ""}; }

class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Service& service, Job& job, const ServedModel& model, JobRequest request)
      : service_(service), job_(job), model_(model), texts_(std::move(request.texts)), checkpoint_every_(request.checkpoint_every),
        revision_(std::move(request.revision)), fitting_(make_fitting(request, job.folder)) {}

  asio::awaitable<Result<void>> run() {
    asio::awaitable<Result<void>> reading = read_texts();
    Result<void> done = co_await std::move(reading);
    if (!done) co_return done;
    asio::awaitable<Result<void>> fitting = fit();
    done = co_await std::move(fitting);
    if (!done) co_return done;
    if (is_stopped()) co_return stopped();
    job_.state = JobState::kLoading;
    WeightSource source;
    source.path = job_.folder;
    // Named, because g++ 12 destroys some temporaries of such an expression twice.
    asio::awaitable<Result<AdapterFacts>> loading = model_.adapters->load(job_.adapter, std::move(source), UpdateMode::kFinish);
    const Result<AdapterFacts> facts = co_await std::move(loading);
    if (!facts) co_return facts.error();
    job_.revision = facts->revision;
    co_return Result<void>();
  }

 private:
  bool is_stopped() const { return job_.cancellation.is_abandoned() || service_.status.state == ServiceState::kDraining; }

  // A few are asked for at once; the scheduler takes them where nobody else wants its time.
  asio::awaitable<Result<void>> read_texts() {
    std::deque<Ticket> running;
    for (std::size_t next = 0, oldest = 0; oldest < texts_.size();) {
      if (is_stopped()) co_return stopped();
      if (next < texts_.size() && running.size() < kTextsAtOnce) {
        Result<Ticket> ticket = submit_text(next);
        if (ticket) {
          running.push_back(std::move(*ticket));
          ++next;
          continue;
        }
        if (ticket.error().code != ErrorCode::kOverloaded) co_return ticket.error();
        if (running.empty()) {  // the queue is full of others
          asio::steady_timer later(service_.loop, std::max(ticket.error().retry_after, std::chrono::seconds(1)));
          co_await later.async_wait(asio::use_awaitable);
          continue;
        }
      }
      asio::awaitable<Result<void>> vector = await_vector(*running.front());
      Result<void> read = co_await std::move(vector);
      running.pop_front();
      if (!read) co_return read;
      asio::awaitable<Result<void>> taking = take_vector();
      read = co_await std::move(taking);
      if (!read) co_return read;
      job_.tokens += texts_[oldest].size();
      job_.texts_read = ++oldest;
    }
    co_return Result<void>();
  }

  asio::awaitable<Result<void>> take_vector() {
    const auto self = shared_from_this();
    asio::awaitable<Result<void>> taking = run_piece([self] {
      self->fitting_->take(std::move(self->vector_));
      self->is_between_ = self->fitting_->advance();
    });
    Result<void> ran = co_await std::move(taking);
    while (ran && !is_between_) {
      asio::awaitable<Result<void>> piece = run_piece([self] { self->is_between_ = self->fitting_->advance(); });
      ran = co_await std::move(piece);
    }
    co_return ran;
  }

  // A head is fitted to what one revision of the weights says of the texts.
  Result<Ticket> submit_text(std::size_t text) {
    Result<AdapterUse> weights = model_.adapters->current(model_.adapter);
    if (!weights) return weights.error();
    if (!revision_) revision_ = weights->revision;
    if (*revision_ != weights->revision) return replaced();
    return model_.engine->submit(request_of(text, std::move(*weights)));
  }

  GenerationRequest request_of(std::size_t text, AdapterUse weights) const {
    GenerationRequest request;
    request.adapter = std::move(weights);
    request.id = fmt::format("{}/{}", job_.id, text);
    request.prompt = texts_[text];
    request.stop.max_tokens = 0;
    std::tie(request.pooling, request.pooled_output) = fitting_->reads();
    request.priority = kLowestPriority;
    request.speculation = {.method = DraftMethod::kOff};
    return request;
  }

  asio::awaitable<Result<void>> await_vector(TokenSource& source) {
    vector_.clear();
    const Abandonment::Wait waits(job_.cancellation, source.arrived());
    while (true) {
      std::optional<TokenEvent> event = source.try_next();
      if (!event) {
        co_await source.arrived().wait();
        event = source.try_next();
      }
      if (is_stopped()) co_return stopped();
      if (!event) continue;
      if (auto* pooled = std::get_if<PooledVector>(&*event)) vector_ = std::move(pooled->values);
      const auto* finish = std::get_if<Finish>(&*event);
      if (finish == nullptr) continue;
      if (finish->error) co_return *finish->error;
      if (finish->usage.weight_changes > 0) co_return replaced();
      if (vector_.empty()) co_return stopped();
      co_return Result<void>();
    }
  }

  asio::awaitable<Result<void>> fit() {
    job_.state = JobState::kFitting;
    // Work on the codec worker owns what it touches: the loop may end before it does.
    const auto self = shared_from_this();
    asio::awaitable<Result<void>> beginning = run_piece([self] { self->fault_ = self->fitting_->begin(); });
    Result<void> ran = co_await std::move(beginning);
    while (ran && !fitting_->done()) {
      asio::awaitable<Result<void>> piece = run_piece([self] { self->advance(); });
      ran = co_await std::move(piece);
      if (!ran) co_return ran;
      if (!is_between_) continue;
      job_.epoch = fitting_->epoch();
      job_.figures = learnt_;
      job_.held_out_figures = held_out_;
      if (fitting_->is_checkpoint(checkpoint_every_)) job_.checkpoint_epoch = job_.epoch;
    }
    co_return ran;
  }

  // Not before its turn among the long texts of others.
  asio::awaitable<Result<void>> run_piece(std::function<void()> work) {
    while (true) {
      if (is_stopped()) co_return stopped();
      std::function<void()> again = work;
      const Result<void> ran = co_await run_codec_job(service_, job_.cancellation, std::move(again));
      if (is_stopped()) co_return stopped();
      if (ran) co_return fault_;
      if (ran.error().code != ErrorCode::kOverloaded) co_return ran;
      asio::steady_timer later(service_.loop, std::chrono::seconds(1));
      co_await later.async_wait(asio::use_awaitable);
    }
  }

  // Codec worker.
  void advance() {
    is_between_ = fitting_->advance();
    if (!is_between_) return;
    learnt_ = fitting_->learnt();
    held_out_ = fitting_->held_out();
    if (fitting_->is_checkpoint(checkpoint_every_)) fault_ = fitting_->save();
  }

  Service& service_;
  Job& job_;
  const ServedModel& model_;
  const std::vector<std::vector<TokenId>> texts_;
  const std::int32_t checkpoint_every_;
  std::optional<std::string> revision_;  // of the weights that the texts are read with; nothing: none has been
  std::unique_ptr<Fitting> fitting_;     // the codec worker's while a piece runs, as all that follows
  std::vector<float> vector_;            // of a text
  bool is_between_ = false;              // what was taken, or an epoch, is over
  FitFigures learnt_, held_out_;
  Result<void> fault_;
};

}  // namespace

asio::awaitable<void> run_job(std::shared_ptr<Service> service, std::shared_ptr<Job> job, ModelHold model, JobRequest request) {
  Result<void> done = Error{ErrorCode::kInternal, "the job failed inside the server", ""};
  const auto run = std::make_shared<Run>(*service, *job, *model, std::move(request));
  try {
    asio::awaitable<Result<void>> running = run->run();
    done = co_await std::move(running);
  } catch (const std::exception& bug) {
    spdlog::error("training job {}: {}", job->id, bug.what());
  }
  job->finished = static_cast<std::int64_t>(std::time(nullptr));
  if (job->state != JobState::kCancelled) job->state = done ? JobState::kSucceeded : JobState::kFailed;
  if (!done && job->state == JobState::kFailed) job->error = done.error().message;
  spdlog::info("training job {} of {}: {}", job->id, job->model, done ? "succeeded, revision " + job->revision : done.error().message);
}

}  // namespace braid::net::training
