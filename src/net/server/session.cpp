#include "net/server/session.h"

#include "net/access/administrator.h"
#include "net/endpoints/router.h"
#include "net/generation/generate.h"
#include "net/http/content_coding.h"
#include "net/http/error_response.h"
#include "net/http/request_reader.h"
#include "net/http/response.h"
#include "net/log/request_record.h"
#include "net/service/codec_jobs.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using http::Clock;
using http::Connection;
using http::ReadLimits;
using http::Request;
using http::RequestReader;
using http::Response;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

using Failure = RequestReader::Failure;
struct Failed {
  Failure failure;
  Request known;  // what had arrived
};
using Received = std::variant<std::monostate, Request, Failed>;  // nothing: the client has closed, or was idle for too long

// RFC 9112 2.2: some clients send an empty line behind a body. It begins no request.
void skip_empty_lines(Connection& connection, std::size_t& skipped) {
  constexpr std::size_t kMaxBytes = 4;
  const auto is_line_end = [](std::string_view input) { return !input.empty() && (input.front() == '\r' || input.front() == '\n'); };
  for (; skipped < kMaxBytes && is_line_end(connection.input()); ++skipped) connection.consume(1);
}

// Whether the request comes the way on which an administrator needs no key.
bool is_administrator_socket(const Endpoint& endpoint, const Connection& connection) {
  return endpoint.caller == Caller::kAdministrator && connection.place() == Connection::Place::kUnixSocket;
}

// Whether somebody who is let in sends a body to somewhere. What else comes is answered by its header: it would fill the memory.
bool is_body_wanted(const Service& service, const Connection& connection, const Request& request) {
  if (!connection.accepts(request.capability)) return false;
  const Resolution resolution = resolve(request.method, request.target, request.speaks_anthropic);
  const auto* route = std::get_if<Route>(&resolution);
  return route != nullptr && (is_administrator_socket(*route->endpoint, connection) || service.keys.identify(request.api_keys));
}

Request without_body(Request request) {
  request.is_whole = false;
  request.keep_alive = false;
  return request;
}

// Whether it is for an endpoint that reads the body itself.
bool is_upload(const Request& request) {
  const Resolution resolution = resolve(request.method, request.target, request.speaks_anthropic);
  const auto* route = std::get_if<Route>(&resolution);
  return route != nullptr && std::holds_alternative<Upload>(route->endpoint->handler);
}

// A request whose body is read by its endpoint, if somebody sends it who is let in. It is the last one of its connection.
Request begun_upload(const Service& service, const Connection& connection, std::shared_ptr<RequestReader> reader) {
  Request request = without_body(reader->known());
  if (is_body_wanted(service, connection, request)) request.rest = std::move(reader);
  return request;
}

// Reads one request, or finds out that there is none. The first one of a connection is waited for also while the server closes: its
// client cannot know.
asio::awaitable<Received> receive(Service& service, Connection& connection, bool first) {
  const ServerOptions& options = service.options;
  const auto shared_reader = std::make_shared<RequestReader>(ReadLimits{options.max_header_bytes, options.max_body_bytes}, is_upload);
  RequestReader& reader = *shared_reader;
  bool begun = false;
  std::size_t empty_line_bytes = 0;  // before the request
  Clock::time_point header_by;       // once begun
  bool body_begun = false;
  while (true) {
    if (!begun) skip_empty_lines(connection, empty_line_bytes);
    const std::size_t used = reader.feed(connection.input());
    connection.consume(used);
    if (reader.in_pieces()) co_return begun_upload(service, connection, shared_reader);
    if (reader.stage() == RequestReader::Stage::kComplete) co_return reader.take();
    if (reader.stage() == RequestReader::Stage::kFailed) co_return Failed{reader.failure(), reader.known()};
    if (!begun && (used > 0 || !connection.input().empty())) {
      begun = true;
      header_by = Clock::now() + options.header_timeout;
    }
    if (!begun && !first && service.closing >= Closing::kIdle) co_return std::monostate{};
    if (service.closing == Closing::kWaiting) co_return std::monostate{};
    const bool in_body = reader.stage() == RequestReader::Stage::kBody;
    if (in_body && !std::exchange(body_begun, true)) {
      if (Request known = reader.known(); !is_body_wanted(service, connection, known)) co_return without_body(std::move(known));
      const bool waits = reader.expects_continue() && connection.input().empty();
      if (waits && !co_await connection.write(kContinue, options.write_timeout)) co_return std::monostate{};
    }
    if (reader.has_paused()) {
      co_await asio::post(service.loop, asio::use_awaitable);
      if (connection.gone()) co_return std::monostate{};
      continue;
    }
    const auto header_left = std::chrono::ceil<std::chrono::milliseconds>(header_by - Clock::now());
    const auto timeout = in_body ? options.body_timeout : begun ? header_left : first ? options.header_timeout : options.idle_timeout;
    connection.set_awaits(begun || first ? Connection::Awaits::kFirstOrRest : Connection::Awaits::kNext);
    const bool received = co_await connection.read_more(timeout);
    connection.set_awaits(Connection::Awaits::kNothing);
    if (received) continue;
    if (!connection.timed_out()) co_return std::monostate{};
    service.counters.count(in_body ? Timeout::kBody : begun ? Timeout::kHeader : Timeout::kIdle);
    if (!begun) co_return std::monostate{};
    co_return Failed{{408, "the request did not arrive in time"}, reader.known()};
  }
}

// Sends an answer of what did not come to a generation, which counts its own refusals, and says in the record how that went.
asio::awaitable<bool> conclude(Service& service, Connection& connection, const Request& request, const Response& response, bool keep_alive,
                               RequestRecord& record) {
  if (response.refusal && !connection.gone()) service.counters.count(refusal_of(*response.refusal));
  std::string bytes;
  http::append_head(bytes, response, http::Framing::kLength, request, keep_alive);
  if (request.method != http::Method::kHead) bytes += response.body;
  const bool written = co_await connection.write(bytes, service.options.write_timeout);
  written ? record.end(response.status) : record.lose();
  co_return written&& keep_alive;
}

// Its id in the header in which the clients of `voice` look for it.
void name_request(Request& request, const Voice& voice) {
  if (!voice.request_id_header.empty()) request.answer_headers.emplace_back(voice.request_id_header, request.request_id);
}

// A refusal in the words of `voice`.
Response refusal(const Voice& voice, const Error& error, const Request& request) {
  Response response = voice.refuse(error);
  voice.sign(response, request.request_id);
  return response;
}

// A compressed body is unpacked on the codec worker, which long texts are for.
asio::awaitable<Result<void>> unpack(Service& service, Request& request) {
  if (request.body.empty() || !http::is_coded(request.content_coding)) co_return Result<void>();
  Result<std::string> body = std::string();
  std::function<void()> work = [&] { body = http::decode_body(request.body, request.content_coding, service.options.max_body_bytes); };
  Abandonment abandonment;
  const Result<void> ran = co_await run_codec_job(service, abandonment, std::move(work));
  if (!ran) co_return ran.error();
  if (!body) {
    if (body.error().code == ErrorCode::kUnsupportedMedia)
      request.answer_headers.emplace_back("Accept-Encoding", std::string(http::kContentCodings));
    co_return body.error();
  }
  request.body = std::move(*body);
  co_return Result<void>();
}

// The work of an endpoint that generates nothing.
TextWork text_work(const Endpoint& endpoint, Dialects& dialects, std::string client) {
  if (const auto* job = std::get_if<TextJob>(&endpoint.handler)) return {job->run, job->voice, false, job->shows_images};
  const RecalledJob& job = std::get<RecalledJob>(endpoint.handler);
  return {[job, &dialects, client = std::move(client)](Value& body, const ServedModel& model) {
    return job.run(body, model, dialects, client);
          },
          &kOpenAiVoice, true};
}

// Of an endpoint whose answer is one piece.
asio::awaitable<Response> begin_answer(std::shared_ptr<Service> service, Dialects& dialects, std::shared_ptr<Connection> connection,
                                       Request& request, const Endpoint& endpoint, const std::shared_ptr<access::Account>& account) {
  std::string body = std::move(request.body);
  if (const auto* const work = std::get_if<Work>(&endpoint.handler))
    return (*work)(std::move(service), std::move(connection), std::move(body));
  if (const auto* const asked = std::get_if<AskedWork>(&endpoint.handler))
    return (*asked)(std::move(service), std::move(connection), Asker{account, request.request_id}, std::move(body));
  if (const auto* const remembering = std::get_if<RememberingWork>(&endpoint.handler))
    return (*remembering)(std::move(service), std::move(connection), dialects, std::move(body));
  return answer_text(std::move(service), std::move(connection), text_work(endpoint, dialects, account->name()), std::move(body));
}

// A request for something that takes work, once its client has been let in.
asio::awaitable<bool> work(std::shared_ptr<Service> service, Dialects& dialects, std::shared_ptr<Connection> connection, Request& request,
                           const Endpoint& endpoint, std::shared_ptr<access::Account> account, RequestRecord& record) {
  const auto keep_alive = [&] { return request.keep_alive && !service->is_closing(); };  // when it is answered
  Result<access::Visit> visit = access::Visit::begin(account, Clock::now());
  if (!visit) {
    account->append_headers(request.answer_headers, Clock::now());
    const Response response = refusal(voice_of(endpoint, dialects, request.speaks_anthropic), visit.error(), request);
    co_return co_await conclude(*service, *connection, request, response, keep_alive(), record);
  }
  const auto* dialect = std::get_if<DialectOf>(&endpoint.handler);
  if (const auto* policy = std::get_if<PolicyWork>(&endpoint.handler)) {
    auto acting = policy->act(service, connection, dialects.policy_sessions, Asker{account, request.request_id}, request.body);
    const std::optional<Response> acted = co_await std::move(acting);
    if (acted) {
      account->append_headers(request.answer_headers, Clock::now());
      co_return co_await conclude(*service, *connection, request, *acted, keep_alive(), record);
    }
    dialect = &policy->dialect;
  }
  if (dialect != nullptr) {
    auto generation = generate(service, connection, std::move(request), *(dialects.**dialect), *visit, record);
    co_return co_await std::move(generation);
  }
  if (const auto* errand = std::get_if<Errand>(&endpoint.handler)) {
    auto running = (*errand)(service, connection, std::move(request), record);
    co_return co_await std::move(running);
  }
  if (const auto* upload = std::get_if<Upload>(&endpoint.handler)) {
    auto running = upload->run(service, connection, std::move(request), record);
    co_return co_await std::move(running);
  }
  auto answering = begin_answer(service, dialects, connection, request, endpoint, account);
  Response response = co_await std::move(answering);
  if (response.status >= 400) voice_of(endpoint, dialects, request.speaks_anthropic).sign(response, request.request_id);
  account->append_headers(request.answer_headers, Clock::now());
  co_return co_await conclude(*service, *connection, request, response, keep_alive(), record);
}

// Whether the request is one of those that may call the endpoint.
Result<void> check_caller(const Service& service, const Connection& connection, const Endpoint& endpoint,
                          const Result<std::shared_ptr<access::Account>>& account, const Request& request) {
  if (is_open(endpoint, service.options)) return {};
  if (!account && !is_administrator_socket(endpoint, connection)) return account.error();
  if (endpoint.caller != Caller::kAdministrator) return {};
  return access::check_administrator(account ? account->get() : nullptr, service.keys.required(), connection.place(), request);
}

// Answers one request. True when the connection may take another.
asio::awaitable<bool> answer(std::shared_ptr<Service> service, Dialects& dialects, std::shared_ptr<Connection> connection,
                             Request& request) {
  if (request.request_id.empty()) request.request_id = service->new_id("req-");
  RequestRecord record(service->counters, service->log, *connection);
  record.begin(request);
  service->cors.append_headers(request.answer_headers, request);
  const bool keep_alive = request.keep_alive && !service->is_closing();
  if (!connection->accepts(request.capability)) {
    const Response response =
        http::error_response({ErrorCode::kUnauthorized, "this socket wants its token in the header X-Braid-Token", ""});
    co_return co_await conclude(*service, *connection, request, response, keep_alive, record);
  }
  Resolution resolution = resolve(request.method, request.target, request.speaks_anthropic);
  if (auto* answered = std::get_if<Answered>(&resolution)) {
    Response& response = answered->response;
    name_request(request, *answered->voice);
    answered->voice->sign(response, request.request_id);
    service->cors.append_preflight(response, request);
    co_return co_await conclude(*service, *connection, request, response, keep_alive, record);
  }
  const Route& route = std::get<Route>(resolution);
  const Endpoint& endpoint = *route.endpoint;
  const Voice& voice = voice_of(endpoint, dialects, request.speaks_anthropic);
  record.route(endpoint.path);
  name_request(request, voice);
  const Result<std::shared_ptr<access::Account>> account = service->keys.identify(std::exchange(request.api_keys, {}));
  if (account) record.key = (*account)->name();
  if (const Result<void> allowed = check_caller(*service, *connection, endpoint, account, request); !allowed) {
    const Response response = refusal(voice, allowed.error(), request);
    co_return co_await conclude(*service, *connection, request, response, keep_alive, record);
  }
  if (const Result<void> unpacked = co_await unpack(*service, request); !unpacked) {
    const Response response = refusal(voice, unpacked.error(), request);
    co_return co_await conclude(*service, *connection, request, response, keep_alive, record);
  }
  if (takes_work(endpoint)) co_return co_await work(service, dialects, connection, request, endpoint, *account, record);
  Response response = std::get<Answer>(endpoint.handler)(
      {*service, dialects, route.argument, route.query, request.body, request.speaks_anthropic, request.prefers_html, record.key});
  if (response.status >= 400) voice.sign(response, request.request_id);
  co_return co_await conclude(*service, *connection, request, response, keep_alive, record);
}

Refusal refusal_of_failure(int status) {
  if (status == 408) return Refusal::kTimeout;
  return status == 413 || status == 431 ? Refusal::kTooLarge : Refusal::kMalformed;
}

// Answers what is no request, or did not arrive.
asio::awaitable<void> answer_failure(Service& service, Connection& connection, Failed& failed) {
  RequestRecord record(service.counters, service.log, connection);
  service.counters.count(refusal_of_failure(failed.failure.status));
  Request& request = failed.known;
  if (request.request_id.empty()) request.request_id = service.new_id("req-");
  record.begin(request);
  service.cors.append_headers(request.answer_headers, request);
  const Response response = http::protocol_error(failed.failure.status, failed.failure.message);
  co_await conclude(service, connection, request, response, false, record);
}

// An upload that is answered before its end may take its time; one that took too much of it may not.
asio::awaitable<void> linger(Service& service, Connection& connection, bool is_upload) {
  const ServerOptions& options = service.options;
  return connection.linger(options.linger_timeout, is_upload ? options.upload_timeout : options.linger_timeout);
}

// Membership in the set of open connections.
class Membership {
 public:
  Membership(http::ConnectionSet& set, Connection& connection) : set_(set), connection_(connection) { set_.add(connection_); }
  ~Membership() { set_.remove(connection_); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  http::ConnectionSet& set_;
  Connection& connection_;
};

}  // namespace

asio::awaitable<void> serve(std::shared_ptr<Service> service, std::shared_ptr<Dialects> dialects, std::shared_ptr<Connection> connection) {
  const Membership membership(*service->connections, *connection);
  ++service->counters.connections;
  bool open = true;
  bool first = true;
  while (open) {
    Received received = co_await receive(*service, *connection, std::exchange(first, false));
    if (auto* failed = std::get_if<Failed>(&received)) {
      co_await answer_failure(*service, *connection, *failed);
      co_await linger(*service, *connection, failed->failure.status == 413);
    }
    auto* request = std::get_if<Request>(&received);
    const bool is_whole = request == nullptr || request->is_whole;
    open = request != nullptr && co_await answer(service, *dialects, connection, *request);
    if (!is_whole) co_await linger(*service, *connection, true);
    // Who has sent thousands at once lets others in between.
    if (open && !connection->input().empty()) co_await asio::post(service->loop, asio::use_awaitable);
  }
  // RFC 9112, 9.6: a reset for what is left unread could overtake the answer.
  if (!connection->gone() && (connection->has_unread() || !connection->input().empty())) co_await linger(*service, *connection, false);
  connection->close();
}

}  // namespace braid::net
