#include <net/codec_jobs.h>
#include <net/text/text_job.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <exception>
#include <functional>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;

asio::awaitable<Result<std::string>> run(Service& service, TextJob job, std::string& body) {
  const Result<const ServedModel*> model = served_model(service.status);
  if (!model) co_return model.error();
  if (body.size() <= service.options.max_inline_body_bytes) co_return job.run(body, **model);
  Result<std::string> answer = std::string();
  std::function<void()> work = [&answer, &body, job, served = *model] { answer = job.run(body, *served); };
  const std::atomic<bool> abandoned{false};
  const Result<void> ran = co_await run_codec_job(service, abandoned, std::move(work));
  if (!ran) co_return ran.error();
  co_return answer;
}

}  // namespace

asio::awaitable<http::Response> answer_text(std::shared_ptr<Service> service, TextJob job, std::string body) {
  Result<std::string> answer = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    answer = co_await run(*service, job, body);
  } catch (const std::exception& bug) {
    spdlog::error("a text job: {}", bug.what());
  }
  if (!answer) co_return job.refuse(answer.error());
  http::Response response;
  response.body = std::move(*answer);
  co_return response;
}

}  // namespace braid::net
