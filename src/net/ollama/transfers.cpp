#include "net/ollama/transfers.h"

#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/ollama/line_format.h"
#include "net/ollama/recipe.h"
#include "net/service/document_stream.h"
#include "net/service/registry_jobs.h"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <utility>

namespace braid::net::ollama {
namespace {

namespace asio = boost::asio;

using TransferWork = std::function<Result<void>(ModelRegistry&, const ProgressSink&)>;

std::string line_of(const TransferProgress& progress) {
  std::string line = R"({"status":)" + json::quoted(progress.status);
  if (!progress.digest.empty()) line += R"(,"digest":)" + json::quoted(progress.digest);
  if (progress.total > 0) fmt::format_to(std::back_inserter(line), R"(,"total":{})", progress.total);
  if (progress.completed > 0) fmt::format_to(std::back_inserter(line), R"(,"completed":{})", progress.completed);
  return line + "}";
}

std::string error_line(const Error& error) {
  std::string line = R"({"error":)";
  json::append_lossy_string(line, error.message);
  return line + "}";
}

// What the work says, until its end or that of the client. The first line waits for what follows it: an error then has a status of its own.
asio::awaitable<bool> tell(DocumentStream& stream, RegistryTask& task, bool streams) {
  bool begun = false;
  while (!stream.gone()) {
    const bool is_over = task.result && (task.news.empty() || (!begun && !*task.result));
    if (is_over) break;
    if (task.news.empty() || (!begun && task.news.size() == 1 && !task.result)) {
      co_await task.arrived.wait();
      continue;
    }
    const std::string line = line_of(task.news.front());
    task.news.pop_front();
    if (!streams) continue;
    if (!std::exchange(begun, true) && !co_await stream.begin(DocumentForm::kLines)) break;
    if (!co_await stream.send(line)) break;
  }
  task.is_unwanted = !task.result;
  if (stream.gone() || !task.result) co_return false;
  const Result<void>& result = *task.result;
  if (begun) {
    const std::string last = result ? std::string() : error_line(result.error());
    if (!last.empty() && !co_await stream.send(last)) co_return false;
    co_return co_await stream.end();
  }
  http::Response response;
  response.body = R"({"status":"success"})";
  if (!result) response = error_response(result.error());
  co_return co_await stream.answer(response);
}

asio::awaitable<bool> run(Service& service, http::Connection& connection, const http::Request& request, RequestRecord& record,
                          Result<TransferWork> work, bool streams) {
  Result<std::shared_ptr<RegistryTask>> task = work ? begin_registry_task(service, std::move(*work)) : work.error();
  DocumentStream stream(service, connection, request, record, [task] {
    if (task) (*task)->arrived.notify();
  });
  if (!task) {
    const http::Response refused = error_response(task.error());
    co_return co_await stream.answer(refused);
  }
  co_return co_await tell(stream, **task, streams);
}

Result<bool> flag_in(const Value& document, std::string_view name, bool otherwise) {
  const Value* value = document.find(name);
  return value == nullptr || value->is_null() ? Result<bool>(otherwise) : json::read_bool(*value, std::string(name));
}

struct Asked {
  Result<TransferWork> work;
  bool streams = true;
};

using Transfer = Result<void> (ModelRegistry::*)(const TransferWish&, const ProgressSink&);

Asked read_transfer(std::string& body, Transfer transfer) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return {document.error()};
  Result<std::string> model = model_in(*document);
  if (!model) return {model.error()};
  const Result<bool> insecure = flag_in(*document, "insecure", false);
  if (!insecure) return {insecure.error()};
  const Result<bool> streams = flag_in(*document, "stream", true);
  if (!streams) return {streams.error()};
  TransferWish wish{std::move(*model), *insecure};
  return {TransferWork([wish = std::move(wish), transfer](ModelRegistry& registry, const ProgressSink& sink) {
            return (registry.*transfer)(wish, sink);
          }),
          *streams};
}

Asked read_creation(std::string& body) {
  Result<Value> document = json::parse_object(body);
  if (!document) return {document.error()};
  const Result<bool> streams = flag_in(*document, "stream", true);
  if (!streams) return {streams.error()};
  Result<ModelRecipe> recipe = read_recipe(*document);
  if (!recipe) return {recipe.error()};
  return {TransferWork(
              [recipe = std::move(*recipe)](ModelRegistry& registry, const ProgressSink& sink) { return registry.create(recipe, sink); }),
          *streams};
}

}  // namespace

asio::awaitable<bool> create(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                             RequestRecord& record) {
  Asked asked = read_creation(request.body);
  auto running = run(*service, *connection, request, record, std::move(asked.work), asked.streams);
  co_return co_await std::move(running);
}

asio::awaitable<bool> pull(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                           RequestRecord& record) {
  Asked asked = read_transfer(request.body, &ModelRegistry::pull);
  auto running = run(*service, *connection, request, record, std::move(asked.work), asked.streams);
  co_return co_await std::move(running);
}

asio::awaitable<bool> push(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                           RequestRecord& record) {
  Asked asked = read_transfer(request.body, &ModelRegistry::push);
  auto running = run(*service, *connection, request, record, std::move(asked.work), asked.streams);
  co_return co_await std::move(running);
}

}  // namespace braid::net::ollama
