#include "net/admin/models.h"

#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/service/asked_model.h"
#include "net/service/document_stream.h"
#include "net/wish/keep_alive.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::admin {
namespace {

namespace asio = boost::asio;

using Call = std::shared_ptr<ModelWait> (*)(ModelHost& host, const AskedModel& asked);

// What is asked for, and how its answer comes.
struct Command {
  AskedModel asked;
  std::optional<DocumentForm> stream;
};

Result<Command> read_command(std::string body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  Command command;
  for (const auto& [name, value] : *document->get_if<ValueDict>()) {
    if (name == "model") {
      Result<std::string> text = json::read_string(value, name);
      if (!text) return text.error();
      command.asked.name = std::move(*text);
    } else if (name == "keep_alive") {
      const auto kept = wish::read_keep_alive(value, name);
      if (!kept) return kept.error();
      command.asked.keep_alive = *kept;
    } else if (name == "stream") {
      if (value == Value(true)) command.stream = DocumentForm::kEvents;
      if (value == Value("ndjson")) command.stream = DocumentForm::kLines;
      if (!command.stream && value != Value(false) && !value.is_null())
        return invalid_argument("'stream' must be true, false or 'ndjson'", name);
    } else {
      return invalid_argument(fmt::format("'{}' is not known here", name), name);
    }
  }
  if (command.asked.name.empty()) return invalid_argument("'model' is missing", "model");
  return command;
}

std::string document_of(std::string_view id, std::string_view status) {
  std::string out = R"({"object":"model.status","id":)";
  json::append_lossy_string(out, id);
  fmt::format_to(std::back_inserter(out), R"(,"status":"{}","success":true}})", status);
  return out;
}

std::string progress_of(std::string_view id, const ModelProgress& progress) {
  std::string out = R"({"object":"model.progress","id":)";
  json::append_lossy_string(out, id);
  out += R"(,"step":)";
  json::append_lossy_string(out, progress.step);
  fmt::format_to(std::back_inserter(out), R"(,"completed":{},"total":{}}})", progress.done, progress.total);
  return out;
}

http::Response no_host() {
  return http::error_response({ErrorCode::kUnsupported, "the models of this server are not loaded and unloaded", ""});
}

// Does what `call` begins, and answers when it has ended.
asio::awaitable<bool> run(DocumentStream& stream, const std::shared_ptr<ModelWait>& wait, std::string id, std::string_view done,
                          std::optional<DocumentForm> form) {
  std::uint64_t told = 0;
  if (form && !co_await stream.begin(*form)) co_return false;
  while (!wait->result && !stream.gone()) {
    co_await wait->arrived.wait();
    if (!form || wait->result || wait->progress.step.empty() || wait->progress.done == told) continue;
    told = wait->progress.done;
    const std::string progress = progress_of(id, wait->progress);
    if (!co_await stream.send(progress)) co_return false;
  }
  const Error gone{ErrorCode::kCancelled, "nobody waits for it any more", ""};
  const Result<ModelHold> result = wait->result ? std::move(*wait->result) : Result<ModelHold>(gone);
  http::Response response = result ? http::Response() : http::error_response(result.error());
  if (result) response.body = document_of(id, done);
  if (!form) co_return co_await stream.answer(response);
  if (!co_await stream.send(response.body)) co_return false;
  co_return co_await stream.end();
}

asio::awaitable<bool> command(Service& service, http::Connection& connection, const http::Request& request, RequestRecord& record,
                              Call call, std::string_view done) {
  std::shared_ptr<ModelWait> wait;
  DocumentStream stream(service, connection, request, record, [&wait] {
    if (wait != nullptr) wait->arrived.notify();
  });
  ModelHost* const host = service.status.host;
  const Result<void> serves = check_service(service.status);
  const Result<Command> read = read_command(request.body);
  std::optional<http::Response> refusal;
  if (!serves) {
    refusal = http::error_response(serves.error());
  } else if (host == nullptr) {
    refusal = no_host();
  } else if (!read) {
    refusal = http::error_response(read.error());
  }
  if (refusal) co_return co_await stream.answer(*refusal);
  const Result<std::string> id = host->find(read->asked.name);
  wait = call(*host, read->asked);
  auto running = run(stream, wait, id ? *id : read->asked.name, done, read->stream);
  co_return co_await std::move(running);
}

// Of all models, or the one in the query.
asio::awaitable<bool> put_all(Service& service, http::Connection& connection, const http::Request& request, RequestRecord& record,
                              bool to_sleep) {
  std::shared_ptr<ModelWait> wait;
  DocumentStream stream(service, connection, request, record, [&wait] {
    if (wait != nullptr) wait->arrived.notify();
  });
  const std::size_t mark = request.target.find('?');
  const std::string_view query = mark == std::string::npos ? std::string_view() : std::string_view(request.target).substr(mark + 1);
  const std::string name = http::query_value(query, "model").value_or(std::string());
  const std::string mode = http::query_value(query, "mode").value_or("wait");
  ModelHost* const host = service.status.host;
  const Result<void> serves = check_service(service.status);
  std::string body = request.body;
  const Result<Value> document = body.empty() ? Result<Value>(Value()) : json::parse_object(body);
  std::optional<http::Response> refusal;
  if (!serves) {
    refusal = http::error_response(serves.error());
  } else if (host == nullptr) {
    refusal = no_host();
  } else if (!document) {
    refusal = http::error_response(document.error());
  } else if (mode != "wait" && mode != "abort") {
    refusal = http::error_response(invalid_argument("'mode' must be 'wait' or 'abort'", "mode"));
  }
  if (refusal) co_return co_await stream.answer(*refusal);
  wait = to_sleep ? host->sleep(name, mode == "abort") : host->wake(name);
  auto running = run(stream, wait, name, to_sleep ? "sleeping" : "loaded", std::nullopt);
  co_return co_await std::move(running);
}

}  // namespace

asio::awaitable<bool> load_model(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                 RequestRecord& record) {
  const Call load = [](ModelHost& host, const AskedModel& asked) { return host.ask(asked.name, asked.keep_alive); };
  auto running = command(*service, *connection, request, record, load, "loaded");
  co_return co_await std::move(running);
}

asio::awaitable<bool> unload_model(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                   RequestRecord& record) {
  const Call unload = [](ModelHost& host, const AskedModel& asked) { return host.unload(asked.name); };
  auto running = command(*service, *connection, request, record, unload, "unloaded");
  co_return co_await std::move(running);
}

asio::awaitable<bool> sleep(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                            RequestRecord& record) {
  auto running = put_all(*service, *connection, request, record, true);
  co_return co_await std::move(running);
}

asio::awaitable<bool> wake(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                           RequestRecord& record) {
  auto running = put_all(*service, *connection, request, record, false);
  co_return co_await std::move(running);
}

http::Response is_sleeping(const ServiceStatus& status, std::string_view query) {
  bool sleeps = false;
  if (status.host != nullptr) {
    const std::optional<std::string> name = http::query_value(query, "model");
    const Result<std::string> id = name ? status.host->find(*name) : Result<std::string>(std::string());
    if (!id) return http::error_response(id.error());
    const std::vector<KnownModel> known = status.host->known();
    sleeps = std::ranges::any_of(known,
                                 [&](const KnownModel& model) { return model.state == ModelState::kAsleep && (!name || model.id == *id); });
  }
  http::Response response;
  response.body = fmt::format(R"({{"is_sleeping":{}}})", sleeps);
  return response;
}

}  // namespace braid::net::admin
