#include "net/generation/generate.h"

#include "braid/signal.h"
#include "net/generation/deadlines.h"
#include "net/generation/failure.h"
#include "net/generation/name_list.h"
#include "net/generation/preparation.h"
#include "net/generation/prompts.h"
#include "net/generation/reviews.h"
#include "net/generation/running_choices.h"
#include "net/generation/streamed_event.h"
#include "net/generation/submission.h"
#include "net/generation/usage_meter.h"
#include "net/generation/whole_answer.h"
#include "net/http/body_writer.h"
#include "net/log/request_record.h"
#include "net/service/count.h"

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using http::Clock;
using http::Connection;

constexpr char kOwnSalt = '\x02';

// One request from its body to the end of its answer; the members are its phases in the order in which they run.
class Generation final : WakeHint {
 public:
  Generation(Service& service, Connection& connection, http::Request request, const Dialect& dialect, access::Visit& visit,
             RequestRecord& record)
      : service_(service), connection_(connection), visit_(visit), request_(std::move(request)), dialect_(dialect), record_(record) {
    record_.begin_work(start_);
    const std::size_t one_request = service.options.max_header_bytes + service.options.max_body_bytes;
    connection_.begin_watch(one_request, [this] { interrupt(); });
    connection_.interrupt_at(deadlines_.next(Progress::kQueued));
  }
  ~Generation() {
    record_.usage = meter_.usage();
    if (!answer_id_.empty())
      meter_.count_answer(record_.reason == RequestEnd::kDone, call_.choices, call_.max_tokens.value_or(model_->context_length));
    service_.answers.erase(answer_id_);
    connection_.end_pings();
    connection_.interrupt_at(Clock::time_point::max());
    connection_.end_watch();
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  asio::awaitable<bool> run() {
    Result<void> submitted = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
    try {
      submitted = co_await begin();
    } catch (const std::exception& bug) {
      record_.log(spdlog::level::err, "submitting a request failed", "error", bug.what());
    }
    if (connection_.gone()) co_return lost();
    if (failure_) co_return co_await refuse_late();
    if (!submitted) {
      service_.counters.count(refusal_of(submitted.error().code));
      co_return co_await refuse(submitted.error());
    }
    if (call_.said_at_once) co_return co_await say_at_once();
    if (call_.stream) co_return co_await stream();
    co_return co_await collect();
  }

 private:
  // By the connection: the client has gone, a ping is due, or a deadline has come.
  void interrupt() {
    const bool gone = connection_.gone();
    interrupted_ = true;
    if (reviews_) {
      gone ? reviews_->streams().cancel() : reviews_->streams().wake();
    } else if (choices_) {
      gone ? choices_->streams().cancel() : choices_->streams().wake();
    } else if (gone || deadlines_.overdue(Clock::now(), Progress::kQueued)) {
      abandonment_.abandon();
    }
  }

  // Parsing, tokenising and submitting: nothing has been sent yet, so every failure still has a status.
  asio::awaitable<Result<void>> begin() {
    Result<Prepared> prepared = co_await prepare(service_, dialect_, visit_.account().name(), request_.body, abandonment_);
    if (!prepared && prepared.error().code == ErrorCode::kCancelled && miss_deadline(Progress::kQueued)) co_return failure_->error;
    if (!prepared) co_return prepared.error();
    model_ = std::move(prepared->model);
    if (model_ != nullptr) record_.model = model_->id;
    if (connection_.gone()) co_return Error{ErrorCode::kCancelled, "the client has gone", ""};
    request_.body = std::string();  // neither it nor the prompt is needed while the answer runs
    call_ = std::move(prepared->call);
    if (!call_.schema_ignored.empty()) request_.answer_headers.emplace_back("X-Braid-Schema-Ignored", name_list(call_.schema_ignored));
    tell_left_out("X-Braid-Tools-Ignored", "tools of a request are left out", call_.tools_left_out);
    tell_left_out("", "items of a request are left out", call_.items_left_out);
    const Result<void> allowed = apply_rules(visit_.account().rules(), call_);
    if (!allowed) co_return allowed.error();
    if (call_.said_at_once) co_return Result<void>();
    Result<Reviewers> reviewers = find_reviewers(service_.status, call_, model_);
    if (!reviewers) co_return reviewers.error();
    reviewers_ = std::move(*reviewers);
    const auto executor = co_await asio::this_coro::executor;
    co_return submit(std::move(prepared->prompts), executor);
  }

  // In the log, and in a header if that has a name.
  void tell_left_out(const char* header, std::string_view message, const std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::string list = sorted_name_list(names);
    record_.log(spdlog::level::debug, message, "names", list);
    if (*header != '\0') request_.answer_headers.emplace_back(header, list);
  }

  Result<void> submit(std::vector<std::vector<TokenId>> prompts, const asio::any_io_executor& executor) {
    std::size_t prompt_tokens = 0;
    for (const std::vector<TokenId>& prompt : prompts) prompt_tokens += prompt.size();
    Result<ModelHold> current = with_current_fingerprint(model_);
    if (!current) return current.error();
    model_ = std::move(*current);
    const std::string id = service_.new_id(dialect_.id_prefix());
    if (!call_.reads_cache) call_.cache_salt += kOwnSalt + id;  // shared with nobody
    const std::uint64_t seed = call_.seeded ? call_.sampling.seed : service_.new_seed();
    call_.client = visit_.account().name();
    meter_.set_prompts(prompts.size(), prompt_tokens);
    Result<std::vector<GenerationRequest>> requests = make_requests(*model_, call_, id, seed, std::move(prompts), dialect_.voice());
    if (!requests) return requests.error();
    Result<std::vector<Ticket>> tickets = submit_all(*model_, visit_, std::move(*requests), prompt_tokens);
    if (!tickets) return tickets.error();
    record_.submit();
    answer_id_ = id;
    service_.answers[id] = {&visit_.account(), model_->engine, tickets->size(), &call_};
    call_.prompt = std::vector<PromptItem>();
    format_ = dialect_.make_format(id, *model_, call_);
    choices_.emplace(executor, std::move(*tickets), *model_->codec, call_, service_, visit_, meter_);
    check_deadlines();
    return {};
  }

  asio::awaitable<bool> say_at_once() {
    http::Response response;
    response.body = std::move(*call_.said_at_once);
    co_return co_await respond(response);
  }

  asio::awaitable<bool> stream() {
    const Count count(service_.counters.open_streams);
    const http::Framing framing = request_.version == 10 ? http::Framing::kClose : http::Framing::kChunked;
    const bool keep_alive = framing == http::Framing::kChunked && request_.keep_alive && !service_.is_closing();
    http::BodyWriter body(framing, service_.piece);
    if (!co_await send_stream_head(framing, keep_alive)) co_return lost();
    if (!dialect_.framing().ping.empty()) connection_.begin_pings(service_.options.ping_interval);
    body.clear();
    guarded([&] { format_->append_begin(body.buffer(), meter_.usage()); });
    while (true) {
      const bool last = ended();
      if (last) append_end(body.buffer());
      const bool is_full = body.buffer().size() >= service_.options.client_buffer_bytes;
      if (!body.empty()) connection_.send_soon(body.frame(last));
      if (last || is_full) connection_.send_now();
      if (connection_.is_behind() && !co_await connection_.catch_up(service_.options.write_timeout)) co_return lost();
      if (connection_.gone()) co_return lost();
      if (last) break;
      std::optional<ChoiceEvent> event = choices_->streams().try_next();
      if (!event && !interrupted_) {
        co_await choices_->streams().arrived().wait(this);
        if (connection_.is_behind() && !co_await connection_.catch_up(service_.options.write_timeout)) co_return lost();
        event = choices_->streams().try_next();
      }
      if (connection_.gone()) co_return lost();
      if (std::exchange(interrupted_, false)) check_deadlines();
      body.clear();  // others have used the buffer
      for (; event && !failure_; event = next_for_write(body)) append(body.buffer(), std::move(*event));
      if (connection_.take_due_ping() && body.empty()) body.buffer() += dialect_.framing().ping;
    }
    record_.end(200);
    if (failure_) record_failure();
    co_return keep_alive && !(failure_ && service_.is_closing());  // its client was told that the connection stays
  }

  void append_end(std::string& out) {
    choices_.reset();
    if (failure_) {
      format_->append_error(out, failure_->error);
    } else {
      format_->append_end(out, meter_.usage());
    }
  }

  asio::awaitable<bool> collect() {
    WholeAnswer answer(choices_->size());
    while (!ended()) {
      std::optional<ChoiceEvent> event = choices_->streams().try_next();
      if (!event && !interrupted_) {
        co_await choices_->streams().arrived().wait();
        event = choices_->streams().try_next();
      }
      if (connection_.gone()) co_return lost();
      if (std::exchange(interrupted_, false)) check_deadlines();
      for (; event && !ended(); event = ended() ? std::nullopt : choices_->streams().try_next())
        guarded([&] { failure_ = answer.add(*choices_, std::move(*event)); });
    }
    choices_.reset();
    if (failure_) co_return co_await refuse_late();
    std::vector<ChoiceAnswer> choices = answer.take(call_);
    if (!reviewers_.models.empty()) {
      const bool stays = co_await review(choices);
      if (!stays) co_return lost();
    }
    if (failure_) co_return co_await refuse_late();
    http::Response response;
    guarded([&] { format_->append_whole(response.body, choices, meter_.usage()); });
    if (failure_) co_return co_await refuse_late();
    co_return co_await respond(response);
  }

  // False: the client has gone.
  asio::awaitable<bool> review(std::vector<ChoiceAnswer>& choices) {
    Result<std::vector<Ticket>> tickets = submit_reviews(reviewers_, call_, answer_id_, choices, visit_);
    if (!tickets) {
      failure_ = Failure{tickets.error(), request_end_of(tickets.error())};
      co_return true;
    }
    reviewers_.reservation.reset();
    service_.answers[answer_id_].sequences = tickets->size();
    const auto executor = co_await asio::this_coro::executor;
    reviews_.emplace(executor, std::move(*tickets));
    asio::awaitable<std::optional<Failure>> running = reviews_->run([this] {
      if (std::exchange(interrupted_, false)) check_deadlines(Progress::kAnswering);
      return !failure_ && !connection_.gone();
    });
    std::optional<Failure> failure = co_await std::move(running);
    if (connection_.gone()) co_return false;
    if (failure) failure_ = std::move(failure);
    if (!failure_) reviews_->move_to(choices);
    reviews_.reset();
    co_return true;
  }

  // With what has ended it after it was submitted, or while it waited for that.
  asio::awaitable<bool> refuse_late() {
    if (failure_->missed_deadline) service_.counters.count(Refusal::kTimeout);
    const bool keep_alive = co_await refuse(failure_->error);
    if (!connection_.gone()) record_failure();
    co_return keep_alive;
  }

  // The connection interrupts the wait for tokens when the next one is due.
  void check_deadlines() {
    check_deadlines(meter_.usage().completion_tokens > 0 ? Progress::kAnswering
                    : choices_->streams().started()      ? Progress::kStarted
                                                         : Progress::kQueued);
  }
  void check_deadlines(Progress progress) {
    miss_deadline(progress);
    connection_.interrupt_at(deadlines_.next(progress));
  }

  bool miss_deadline(Progress progress) {
    std::optional<Failure> overdue = deadlines_.overdue(Clock::now(), progress);
    if (!overdue) return false;
    failure_ = std::move(overdue);
    return true;
  }

  bool ended() const { return failure_ || choices_->all_ended(); }

  void record_failure() {
    record_.reason = failure_->end;
    record_.error = failure_->error.message;
  }

  // An exception becomes the answer's error.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const std::exception& bug) {
      record_.log(spdlog::level::err, "answering a request failed", "error", bug.what());
      failure_ = {{ErrorCode::kInternal, "the request failed inside the server", ""}, RequestEnd::kInternal};
    }
  }

  // Half an event that an exception interrupts does not stay in `out`.
  void append(std::string& out, ChoiceEvent&& event) {
    const std::size_t begin = out.size();
    guarded([&] { failure_ = append_event(out, *format_, *choices_, std::move(event), meter_.usage()); });
    if (failure_) out.resize(begin);
  }

  // What has arrived while the last write was under way goes into one write with it.
  std::optional<ChoiceEvent> next_for_write(http::BodyWriter& body) {
    if (ended() || body.buffer().size() >= service_.options.client_buffer_bytes) return std::nullopt;
    return choices_->streams().try_next();
  }

  asio::awaitable<bool> send_stream_head(http::Framing framing, bool keep_alive) {
    http::Response response;
    response.content_type = dialect_.framing().content_type;
    response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    visit_.account().append_headers(request_.answer_headers, Clock::now());
    std::string head;
    http::append_head(head, response, framing, request_, keep_alive);
    co_return co_await connection_.write(head, service_.options.write_timeout);
  }

  asio::awaitable<bool> refuse(const Error& error) {
    http::Response response = dialect_.voice().refuse(error);
    dialect_.voice().sign(response, request_.request_id);
    co_return co_await respond(response);
  }

  asio::awaitable<bool> respond(const http::Response& response) {
    const bool keep_alive = request_.keep_alive && !service_.is_closing();
    visit_.account().append_headers(request_.answer_headers, Clock::now());
    std::string bytes;
    http::append_head(bytes, response, http::Framing::kLength, request_, keep_alive);
    bytes += response.body;
    if (!co_await connection_.write(bytes, service_.options.write_timeout)) co_return lost();
    record_.end(response.status);
    co_return keep_alive;
  }

  bool lost() {
    choices_.reset();
    reviews_.reset();
    record_.lose();
    return false;
  }

  void prefetch() const noexcept override {
    if (choices_) choices_->prefetch();
    prefetch_lines(format_.get(), 192);
    prefetch_lines(&connection_, 192);
    prefetch_lines(&visit_, sizeof(access::Visit));
    prefetch_lines(&call_.sampling.top_logprobs, 128);
    prefetch_lines(&call_.timings, 128);
  }

  // What a token needs comes first (WakeHint::kBytes).
  Service& service_;
  Connection& connection_;
  access::Visit& visit_;
  ModelHold model_;  // outlives all that is made for it
  std::unique_ptr<AnswerFormat> format_;
  std::optional<RunningChoices> choices_;  // from its submission to its end
  Clock::time_point start_ = Clock::now();
  UsageMeter meter_{service_.counters, start_};
  bool interrupted_ = false;        // by the connection, since the last look at deadlines
  std::optional<Failure> failure_;  // ends the answer
  GenerationCall call_;
  http::Request request_;
  const Dialect& dialect_;
  RequestRecord& record_;
  std::string answer_id_;                  // empty until submitted
  Reviewers reviewers_;                    // of the call's reviews
  std::optional<RunningReviews> reviews_;  // once all choices have ended
  Abandonment abandonment_;                // of its preparation
  Deadlines deadlines_{service_.options.limits_of(dialect_.work()), start_};
};

}  // namespace

asio::awaitable<bool> generate(std::shared_ptr<Service> service, std::shared_ptr<Connection> connection, http::Request request,
                               const Dialect& dialect, access::Visit& visit, RequestRecord& record) {
  Generation generation(*service, *connection, std::move(request), dialect, visit, record);
  co_return co_await generation.run();
}

}  // namespace braid::net
