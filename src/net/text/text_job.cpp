#include "net/text/text_job.h"

#include "net/json/parse.h"
#include "net/service/codec_jobs.h"

#include <exception>
#include <functional>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;

// While it lives, a client that goes abandons the job.
class Watch {
 public:
  Watch(http::Connection& connection, const ServerOptions& options, Abandonment& abandonment) : connection_(connection) {
    connection.begin_watch(options.max_header_bytes + options.max_body_bytes, [&connection, &abandonment] {
      if (connection.gone()) abandonment.abandon();
    });
  }
  ~Watch() { connection_.end_watch(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  http::Connection& connection_;
};

Result<std::string> run_now(const TextWork& job, std::string& body, const ModelDirectory& models) {
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  const Result<const ServedModel*> model = named_model(models, *document);
  if (!model) return model.error();
  return job.run(*document, **model);
}

asio::awaitable<Result<std::string>> run(Service& service, http::Connection& connection, const TextWork& job, std::string& body) {
  const Result<const ModelDirectory*> served = served_models(service.status);
  if (!served) co_return served.error();
  const ModelDirectory models = **served;
  if (!job.is_long && body.size() <= service.options.max_inline_body_bytes) co_return run_now(job, body, models);
  Result<std::string> answer = std::string();
  std::function<void()> work = [&answer, &body, &models, &job] { answer = run_now(job, body, models); };
  Abandonment abandonment;
  const Watch watch(connection, service.options, abandonment);
  const Result<void> ran = co_await run_codec_job(service, abandonment, std::move(work));
  if (!ran) co_return ran.error();
  co_return answer;
}

}  // namespace

asio::awaitable<http::Response> answer_text(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, TextWork work,
                                            std::string body) {
  Result<std::string> answer = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    answer = co_await run(*service, *connection, work, body);
  } catch (const std::exception& bug) {
    spdlog::error("a text job: {}", bug.what());
  }
  if (!answer) co_return work.voice->refuse(answer.error());
  http::Response response;
  response.body = std::move(*answer);
  co_return response;
}

}  // namespace braid::net
