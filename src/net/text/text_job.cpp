#include "net/text/text_job.h"

#include "net/generation/name_list.h"
#include "net/json/parse.h"
#include "net/service/asked_model.h"
#include "net/service/codec_jobs.h"

#include <exception>
#include <functional>
#include <optional>
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

// Here or on the codec worker; what `work` refers to outlives the wait.
asio::awaitable<Result<void>> in_its_place(Service& service, Abandonment& abandonment, bool is_short, std::function<void()>& work) {
  if (!is_short) {
    auto running = run_codec_job(service, abandonment, std::move(work));
    co_return co_await std::move(running);
  }
  work();
  co_return Result<void>();
}

// Parsing and the work itself run here or on the codec worker; between them the model is found on the loop.
asio::awaitable<Result<TextAnswer>> run(Service& service, http::Connection& connection, const TextWork& job, std::string& body) {
  if (const Result<void> serves = check_service(service.status); !serves) co_return serves.error();
  const bool is_short = !job.is_long && body.size() <= service.options.max_inline_body_bytes;
  Abandonment abandonment;
  std::optional<Watch> watch;
  if (!is_short) watch.emplace(connection, service.options, abandonment);
  Result<Value> document = Value();
  std::function<void()> parsing = [&] { document = json::parse_object(body); };
  if (const Result<void> ran = co_await in_its_place(service, abandonment, is_short, parsing); !ran) co_return ran.error();
  if (!document) co_return document.error();
  Result<AskedModel> asked = asked_model(*document);
  if (!asked) co_return asked.error();
  Result<ModelHold> model = take_model(service.status, *asked);
  if (model && *model == nullptr) {
    if (!watch) watch.emplace(connection, service.options, abandonment);
    model = co_await await_model(service.status, abandonment, std::move(*asked));
  }
  if (!model) co_return model.error();
  Result<TextAnswer> answer = TextAnswer();
  std::function<void()> work = [&] { answer = job.run(*document, **model); };
  const bool decodes = job.shows_images && (*model)->images != nullptr;
  if (decodes && !watch) watch.emplace(connection, service.options, abandonment);
  if (const Result<void> ran = co_await in_its_place(service, abandonment, is_short && !decodes, work); !ran) co_return ran.error();
  co_return answer;
}

}  // namespace

asio::awaitable<http::Response> answer_text(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, TextWork work,
                                            std::string body) {
  Result<TextAnswer> answer = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    answer = co_await run(*service, *connection, work, body);
  } catch (const std::exception& bug) {
    spdlog::error("a text job: {}", bug.what());
  }
  if (!answer) co_return work.voice->refuse(answer.error());
  http::Response response;
  response.body = std::move(answer->document);
  if (!answer->tools_left_out.empty()) response.headers.emplace_back("X-Braid-Tools-Ignored", sorted_name_list(answer->tools_left_out));
  co_return response;
}

}  // namespace braid::net
