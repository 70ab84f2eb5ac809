#include "net/training/run_job.h"

#include "braid/adapters.h"
#include "net/training/adapter_folder.h"

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
#include <utility>
#include <vector>

namespace braid::net::training {
namespace {

namespace asio = boost::asio;

constexpr std::int32_t kLowestPriority = 100;
constexpr std::size_t kTextsAtOnce = 4;
constexpr std::size_t kWorkOfPiece = 4'000'000;  // multiplications on the codec worker, where requests of others wait meanwhile

Error replaced() {
  return {ErrorCode::kCancelled, "the weights of the model were replaced while the job read its texts: start it again", ""};
}

Error stopped() { return {ErrorCode::kCancelled, "the job was cancelled", ""}; }

class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(Service& service, Job& job, const ServedModel& model, JobRequest request)
      : service_(service), job_(job), model_(model), request_(std::move(request)) {}

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
    vectors_.resize(request_.texts.size());
    for (std::size_t next = 0, oldest = 0; oldest < request_.texts.size();) {
      if (is_stopped()) co_return stopped();
      if (next < request_.texts.size() && running.size() < kTextsAtOnce) {
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
      asio::awaitable<Result<void>> vector = await_vector(*running.front(), vectors_[oldest]);
      const Result<void> read = co_await std::move(vector);
      if (!read) co_return read;
      running.pop_front();
      job_.tokens += request_.texts[oldest].size();
      job_.texts_read = ++oldest;
    }
    co_return Result<void>();
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
    request.prompt = request_.texts[text];
    request.stop.max_tokens = 0;
    request.pooling = Pooling::kLast;
    request.priority = kLowestPriority;
    request.speculation = {.method = DraftMethod::kOff};
    return request;
  }

  asio::awaitable<Result<void>> await_vector(TokenSource& source, std::vector<float>& vector) {
    const Abandonment::Wait waits(job_.cancellation, source.arrived());
    while (true) {
      std::optional<TokenEvent> event = source.try_next();
      if (!event) {
        co_await source.arrived().wait();
        event = source.try_next();
      }
      if (is_stopped()) co_return stopped();
      if (!event) continue;
      if (auto* pooled = std::get_if<PooledVector>(&*event)) vector = std::move(pooled->values);
      const auto* finish = std::get_if<Finish>(&*event);
      if (finish == nullptr) continue;
      if (finish->error) co_return *finish->error;
      if (finish->usage.weight_changes > 0) co_return replaced();
      if (vector.empty()) co_return stopped();
      co_return Result<void>();
    }
  }

  asio::awaitable<Result<void>> fit() {
    job_.state = JobState::kFitting;
    // Work on the codec worker owns what it touches: the loop may end before it does.
    const auto self = shared_from_this();
    asio::awaitable<Result<void>> beginning = run_piece([self] { self->begin_fit(); });
    Result<void> ran = co_await std::move(beginning);
    while (ran && !fit_->done()) {
      asio::awaitable<Result<void>> piece = run_piece([self] { self->advance(); });
      ran = co_await std::move(piece);
      if (!ran) co_return ran;
      job_.epoch = fit_->epoch();
      job_.figures = learnt_;
      job_.held_out_figures = held_out_;
      if (is_checkpoint()) job_.checkpoint_epoch = job_.epoch;
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
  void begin_fit() {
    if (request_.resumes) {
      auto head = read_head(folder_, vectors_.front().size());
      if (!head) {
        fault_ = head.error();
        return;
      }
      request_.fit.begin = std::move(*head);
    }
    fit_.emplace(std::move(vectors_), std::move(request_.examples), std::move(request_.fit));
  }

  // Likewise: some epochs, up to the next checkpoint.
  void advance() {
    const std::size_t work = std::max<std::size_t>(1, fit_->epoch_work());
    for (std::size_t done = 0; done == 0 || (done + work <= kWorkOfPiece && !is_checkpoint()); done += work) fit_->advance();
    learnt_ = fit_->learnt();
    held_out_ = fit_->held_out();
    if (is_checkpoint()) fault_ = write_head(folder_, fit_->head());
  }

  // The end is one, too.
  bool is_checkpoint() const {
    return fit_->done() || (request_.checkpoint_every > 0 && fit_->epoch() > 0 && fit_->epoch() % request_.checkpoint_every == 0);
  }

  Service& service_;
  Job& job_;
  const ServedModel& model_;
  const std::string folder_ = job_.folder;
  JobRequest request_;
  std::optional<std::string> revision_;  // of the weights that the texts are read with; nothing: none has been
  std::vector<std::vector<float>> vectors_;
  std::optional<HeadFit> fit_;  // the codec worker's while a piece runs, as the next three
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
