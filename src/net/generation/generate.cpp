#include <braid/signal.h>
#include <fmt/format.h>
#include <net/count.h>
#include <net/generation/best_of.h>
#include <net/generation/choice_streams.h>
#include <net/generation/choice_text.h>
#include <net/generation/deadlines.h>
#include <net/generation/generate.h>
#include <net/generation/preparation.h>
#include <net/generation/prompts.h>
#include <net/http/body_writer.h>
#include <net/http/error_response.h>
#include <net/log/request_record.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using http::Clock;
using http::Connection;

constexpr char kAccountSalt = '\x01';              // begins the salt of a request whose account has one

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// The state of one generation; its members are the phases in the order in which they run.
class Generation final : WakeHint {
 public:
  Generation(Service& service, Connection& connection, http::Request request, const Dialect& dialect, access::Visit& visit,
             RequestRecord& record)
      : service_(service), connection_(connection), visit_(visit), request_(std::move(request)), dialect_(dialect), record_(record) {
    const std::size_t one_request = service.options.max_header_bytes + service.options.max_body_bytes;
    connection_.begin_watch(one_request, [this] { interrupt(); });
    connection_.interrupt_at(deadlines_.next(Progress::kQueued));
  }
  ~Generation() {
    record_.usage = usage_;
    service_.answers.erase(answer_id_);
    connection_.end_pings();
    connection_.interrupt_at(Clock::time_point::max());
    connection_.end_watch();
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  asio::awaitable<bool> run() {
    Result<void> admitted = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
    try {
      admitted = co_await admit();
    } catch (const std::exception& bug) {
      record_.log(spdlog::level::err, "admitting a request failed", bug.what());
    }
    if (connection_.gone()) co_return lost();
    if (missed_) co_return co_await refuse_late();
    if (!admitted) {
      service_.counters.count(refusal_of(admitted.error().code));
      co_return co_await refuse(admitted.error());
    }
    if (call_.stream) co_return co_await stream();
    co_return co_await collect();
  }

 private:
  // By the connection: the client has gone, a ping is due, or a deadline has come.
  void interrupt() {
    const bool gone = connection_.gone();
    interrupted_ = true;
    if (streams_) {
      gone ? streams_->cancel() : streams_->wake();
    } else if (gone || deadlines_.overdue(Clock::now(), Progress::kQueued)) {
      abandonment_.abandon();
    }
  }

  // Parsing, tokenising and submitting: nothing has been sent yet, so every failure still has a status.
  asio::awaitable<Result<void>> admit() {
    const Result<const ServedModel*> model = served_model(service_.status);
    if (!model) co_return model.error();
    model_ = *model;
    record_.model = model_->id;
    const responses::Shelf shelf(service_.stored_responses, visit_.account().name());
    Result<Prepared> prepared = co_await prepare(service_, dialect_, *model_, shelf, request_.body, abandonment_);
    if (!prepared && prepared.error().code == ErrorCode::kCancelled && miss_deadline(Progress::kQueued)) co_return *failure_;
    if (!prepared) co_return prepared.error();
    if (connection_.gone()) co_return Error{ErrorCode::kCancelled, "the client has gone", ""};
    request_.body = std::string();  // neither it nor the prompt is needed while the answer runs
    call_ = std::move(prepared->call);
    const Result<void> allowed = apply_rules();
    if (!allowed) co_return allowed.error();
    const auto executor = co_await asio::this_coro::executor;
    co_return submit(std::move(prepared->prompts), executor);
  }

  // What the client's account says of its requests.
  Result<void> apply_rules() {
    const access::Rules& rules = visit_.account().rules();
    if (!call_.priority) call_.priority = rules.priority;
    if (*call_.priority < rules.best_priority)
      return invalid_argument(fmt::format("your requests may have a priority of {} at best, not {}", rules.best_priority, *call_.priority),
                              "priority");
    if (call_.cache_salt.starts_with(kAccountSalt))
      return invalid_argument("'cache_salt' may not begin with a control character", "cache_salt");
    if (!rules.cache_salt.empty())
      call_.cache_salt = fmt::format("{0}{1}{0}{2}", kAccountSalt, rules.cache_salt, call_.cache_salt);
    return {};
  }

  Result<void> submit(std::vector<std::vector<TokenId>> prompts, const asio::any_io_executor& executor) {
    const std::string id = service_.new_id(dialect_.id_prefix);
    const std::uint64_t seed = call_.seeded ? call_.sampling.seed : service_.new_seed();
    Result<std::vector<Request>> requests = make_requests(*model_, call_, id, seed, std::move(prompts));
    if (!requests) return requests.error();
    Result<std::vector<Ticket>> tickets = submit_all(std::move(*requests));
    if (!tickets) return tickets.error();
    answer_id_ = id;
    service_.answers[id] = {&visit_.account(), tickets->size()};
    call_.prompt = std::vector<PromptItem>();
    running_ = tickets->size();
    format_ = dialect_.make_format(id, *model_, call_);
    streams_.emplace(executor, std::move(*tickets));
    check_deadlines();
    return {};
  }

  // All of them or none.
  Result<std::vector<Ticket>> submit_all(std::vector<Request> requests) {
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (is_first_of_prompt(i)) usage_.prompt_tokens += static_cast<std::int32_t>(requests[i].prompt.size());
    const auto prompt_tokens = static_cast<std::size_t>(usage_.prompt_tokens);
    const Result<void> paid = visit_.take_prompt(prompt_tokens, Clock::now());
    if (!paid) return paid.error();
    if (const Result<void> fits = model_->engine->check_queue(requests.size(), *call_.priority); !fits) {  // some of them would be in the way
      visit_.give_back(prompt_tokens);
      return fits.error();
    }
    std::vector<Ticket> tickets;
    for (Request& request : requests) {
      Result<Ticket> ticket = model_->engine->submit(std::move(request));
      if (!ticket) {
        visit_.give_back(prompt_tokens);
        return ticket.error();
      }
      tickets.push_back(std::move(*ticket));
      choices_.push_back({ChoiceText(*model_->codec, call_, service_.new_seed()), {}});
    }
    return tickets;
  }

  asio::awaitable<bool> stream() {
    const Count count(service_.counters.open_streams);
    const http::Framing framing = request_.version == 10 ? http::Framing::kClose : http::Framing::kChunked;
    const bool keep_alive = framing == http::Framing::kChunked && request_.keep_alive && !service_.is_closing();
    http::BodyWriter body(framing, service_.piece);
    frame_ = &body;
    if (!co_await send_stream_head(framing, keep_alive)) co_return lost();
    connection_.begin_pings(service_.options.ping_interval);
    body.clear();
    guarded([&] { format_->append_begin(body.buffer(), usage_); });
    while (true) {
      const bool last = ended();
      if (last) append_end(body.buffer());
      const bool is_full = body.buffer().size() >= service_.options.client_buffer_bytes;
      if (!body.empty()) connection_.send_soon(body.frame(last));
      if (last || is_full) connection_.send_now();
      if (connection_.is_behind() && !co_await connection_.catch_up(service_.options.write_timeout)) co_return lost();
      if (connection_.gone()) co_return lost();
      if (last) break;
      std::optional<ChoiceEvent> event = streams_->try_next();
      if (!event && !interrupted_) {
        co_await streams_->arrived().wait(this);
        if (connection_.is_behind() && !co_await connection_.catch_up(service_.options.write_timeout)) co_return lost();
        event = streams_->try_next();
      }
      if (connection_.gone()) co_return lost();
      if (std::exchange(interrupted_, false)) check_deadlines();
      body.clear();  // others have used the buffer
      for (; event && !failure_; event = next_for_write(body)) append_event(body.buffer(), std::move(*event));
      if (connection_.take_due_ping() && body.empty()) body.buffer() += ": ping\n\n";
    }
    record_.end(200);
    if (failure_) fail(*failure_);
    co_return keep_alive && !(failure_ && service_.is_closing());  // its client was told that the connection stays
  }

  void append_end(std::string& out) {
    streams_.reset();
    if (failure_) {
      format_->append_error(out, *failure_);
    } else {
      format_->append_end(out, usage_);
    }
  }

  asio::awaitable<bool> collect() {
    std::vector<ChoiceAnswer> answers(choices_.size());
    while (!ended()) {
      std::optional<ChoiceEvent> event = streams_->try_next();
      if (!event && !interrupted_) {
        co_await streams_->arrived().wait();
        event = streams_->try_next();
      }
      if (connection_.gone()) co_return lost();
      if (std::exchange(interrupted_, false)) check_deadlines();
      for (; event && !ended(); event = ended() ? std::nullopt : streams_->try_next()) {
        guarded([&] { collect_event(answers, std::move(*event)); });
      }
    }
    streams_.reset();
    share_prompt_scores(answers);
    keep_best(answers, static_cast<std::size_t>(call_.candidates), static_cast<std::size_t>(call_.choices));
    http::Response response;
    guarded([&] {
      if (!failure_) format_->append_whole(response.body, answers, usage_);
    });
    if (failure_) co_return co_await refuse_late();
    co_return co_await respond(response);
  }

  // With what has ended it after it was admitted, or while it waited for that.
  asio::awaitable<bool> refuse_late() {
    if (missed_) service_.counters.count(Refusal::kTimeout);
    const bool keep_alive = co_await refuse(*failure_);
    if (!connection_.gone()) fail(*failure_);
    co_return keep_alive;
  }

  // The connection interrupts the wait for tokens when the next one is due.
  void check_deadlines() {
    const Progress progress = usage_.completion_tokens > 0 ? Progress::kAnswering
                              : streams_->started()        ? Progress::kStarted
                                                           : Progress::kQueued;
    miss_deadline(progress);
    connection_.interrupt_at(deadlines_.next(progress));
  }

  bool miss_deadline(Progress progress) {
    std::optional<Overdue> overdue = deadlines_.overdue(Clock::now(), progress);
    if (!overdue) return false;
    failure_ = std::move(overdue->error);
    missed_ = overdue->reason;
    return true;
  }

  bool ended() const { return running_ == 0 || failure_; }

  // An answer that had begun ends so.
  void fail(const Error& error) {
    record_.reason = missed_.value_or(dropped_ ? RequestEnd::kSlowReader : request_end_of(error));
    record_.error = error.message;
  }

  // An exception becomes the answer's error.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const std::exception& bug) {
      record_.log(spdlog::level::err, "answering a request failed", bug.what());
      failure_ = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
    }
  }

  // Takes one event into its choice's text. The end when it ends the choice.
  std::optional<ChoiceEnd> take(ChoiceEvent&& event) {
    ChoiceText& text = choices_[event.choice].text;
    if (auto* prompt = std::get_if<PromptTokens>(&event.event)) {
      text.add_prompt(std::move(*prompt));
      return std::nullopt;
    }
    if (auto* token = std::get_if<Token>(&event.event)) {
      take_time(event.choice);
      if (!std::exchange(choices_[event.choice].has_begun, true)) count_cached(event.choice, streams_->cached_tokens(event.choice));
      ++usage_.completion_tokens;
      visit_.take_generated(1);
      const std::int32_t reasoning_before = text.reasoning_tokens();
      std::optional<ChoiceEnd> end = text.add(std::move(*token));
      usage_.reasoning_tokens += text.reasoning_tokens() - reasoning_before;
      if (!end) return std::nullopt;
      count_cached(event.choice, streams_->complete(event.choice));
      --running_;
      return end;
    }
    const auto& finish = std::get<Finish>(event.event);
    --running_;
    count_cached(event.choice, finish.usage.cached_tokens);
    if (usage_.queue_ms == 0.0) usage_.queue_ms = finish.usage.queue_ms;
    if (finish.reason == FinishReason::kError || finish.reason == FinishReason::kCancelled) {
      dropped_ = finish.error && finish.error->code == ErrorCode::kCancelled;
      failure_ = finish.error.value_or(Error{ErrorCode::kCancelled, "the request was aborted", ""});
      return std::nullopt;
    }
    return text.finish(finish.reason);
  }

  // A prompt is scored for its first candidate only, unless the answer is streamed: then none waits for another.
  void share_prompt_scores(std::vector<ChoiceAnswer>& answers) const {
    const auto candidates = static_cast<std::size_t>(call_.candidates);
    for (std::size_t i = 0; i < answers.size(); ++i)
      if (!is_first_of_prompt(i)) answers[i].prompt = answers[i - i % candidates].prompt;
  }

  // Candidates of one prompt share it, and usage counts it once.
  bool is_first_of_prompt(std::size_t choice) const { return choice % static_cast<std::size_t>(call_.candidates) == 0; }

  // In place of what was told of this choice before.
  void count_cached(std::uint32_t choice, std::int32_t tokens) {
    if (is_first_of_prompt(choice)) usage_.cached_tokens += tokens - std::exchange(choices_[choice].cached_tokens, tokens);
  }

  // At each token: the clock is read only where somebody wants to know.
  void take_time(std::uint32_t choice) {
    const bool first = usage_.completion_tokens == 0;
    if (!first && !call_.timings && !service_.options.metrics) return;
    const Clock::time_point now = Clock::now();
    const Clock::time_point before = std::exchange(choices_[choice].last_token, now);
    if (before != Clock::time_point()) service_.counters.inter_token_ms.observe(milliseconds(now - before));
    const double elapsed = milliseconds(now - start_);
    if (first) {
      service_.counters.first_token_ms.observe(elapsed);
      usage_.queue_ms = std::min(streams_->queue_ms(choice), elapsed);
      usage_.prompt_ms = elapsed - usage_.queue_ms;
    }
    usage_.generation_ms = elapsed - usage_.queue_ms - usage_.prompt_ms;
  }

  void collect_event(std::vector<ChoiceAnswer>& answers, ChoiceEvent&& event) {
    const std::uint32_t choice = event.choice;
    ChoiceText& text = choices_[choice].text;
    std::optional<ChoiceEnd> end = take(std::move(event));
    ChoicePiece& piece = answers[choice].piece;
    piece.take(text.pending());
    if (!end) return;
    piece.tokens.take(text.pending().tokens);
    answers[choice] = {std::move(piece), std::move(*end), std::move(text.prompt()), text.mean_logprob()};
  }

  // Half an event that an exception interrupts does not stay in `out`.
  void append_event(std::string& out, ChoiceEvent&& event) {
    const std::size_t begin = out.size();
    guarded([&] { write_event(out, std::move(event)); });
    if (failure_) out.resize(begin);
  }

  void write_event(std::string& out, ChoiceEvent&& event) {
    const std::uint32_t choice = event.choice;
    ChoiceText& text = choices_[choice].text;
    const bool is_prompt = std::holds_alternative<PromptTokens>(event.event);
    if (!is_prompt && !text.begun()) format_->append_prompt(out, choice, text.prompt(), usage_);
    const std::optional<ChoiceEnd> end = take(std::move(event));
    ChoicePiece& pending = text.pending();
    for (const Delta& delta : pending.deltas) {
      format_->append_delta(out, choice, delta, pending.tokens, usage_);
      pending.tokens.clear();
    }
    pending.deltas.clear();
    if (!end) return;
    format_->append_finish(out, choice, *end, pending.tokens, usage_);
    pending.clear();
  }

  // What has arrived while the last write was under way goes into one write with it.
  std::optional<ChoiceEvent> next_for_write(http::BodyWriter& body) {
    if (ended() || body.buffer().size() >= service_.options.client_buffer_bytes) return std::nullopt;
    return streams_->try_next();
  }

  asio::awaitable<bool> send_stream_head(http::Framing framing, bool keep_alive) {
    http::Response response;
    response.content_type = "text/event-stream";
    response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    visit_.account().append_headers(request_.answer_headers, Clock::now());
    std::string head;
    http::append_head(head, response, framing, request_, keep_alive);
    co_return co_await connection_.write(head, service_.options.write_timeout);
  }

  asio::awaitable<bool> refuse(const Error& error) {
    const http::Response response = dialect_.refuse(error);
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
    streams_.reset();
    record_.lose();
    return false;
  }

  void prefetch() const noexcept override {
    prefetch_lines(static_cast<const std::byte*>(frame_) - 256, 512);
    prefetch_lines(choices_.data(), sizeof(Choice));
    prefetch_lines(format_.get(), 192);
    prefetch_lines(&connection_, 192);
    prefetch_lines(&visit_, sizeof(access::Visit));
    prefetch_lines(&call_.sampling.top_logprobs, 128);
    prefetch_lines(&call_.timings, 128);
  }

  struct Choice {
    ChoiceText text;
    Clock::time_point last_token{};  // the epoch before the first
    std::int32_t cached_tokens = 0;  // of usage_
    bool has_begun = false;
  };

  // What a token needs comes first (WakeHint::kBytes).
  Service& service_;
  Connection& connection_;
  access::Visit& visit_;
  const void* frame_ = nullptr;  // a place in that of stream()
  std::vector<Choice> choices_;
  std::unique_ptr<AnswerFormat> format_;
  std::optional<ChoiceStreams> streams_;
  std::size_t running_ = 0;  // choices that have not ended
  Usage usage_;
  Clock::time_point start_ = Clock::now();
  bool interrupted_ = false;      // by the connection, since the last look at deadlines
  std::optional<Error> failure_;  // of any choice: ends the answer
  GenerationCall call_;
  http::Request request_;
  const Dialect& dialect_;
  RequestRecord& record_;
  const ServedModel* model_ = nullptr;
  std::string answer_id_;               // empty until submitted
  Abandonment abandonment_;             // of its preparation
  Deadlines deadlines_{service_.options, start_};
  std::optional<RequestEnd> missed_;  // a deadline
  bool dropped_ = false;              // by the engine, whose reason it is, and not by the answer's id
};

}  // namespace

asio::awaitable<bool> generate(std::shared_ptr<Service> service, std::shared_ptr<Connection> connection,
                                            http::Request request, Dialect dialect, access::Visit& visit, RequestRecord& record) {
  Generation generation(*service, *connection, std::move(request), dialect, visit, record);
  co_return co_await generation.run();
}

}  // namespace braid::net
