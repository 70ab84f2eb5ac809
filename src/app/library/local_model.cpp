#include "braid/local_model.h"

#include "app/chat_tokens.h"
#include "app/load_models.h"
#include "sched/scheduler.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

namespace braid {
namespace {

namespace asio = boost::asio;

app::ModelOptions model_options(const LocalModelOptions& options) {
  app::ModelOptions model;
  model.model = options.path;
  model.threads = options.threads;
  if (options.context > 0) model.context = options.context;
  if (options.kv_memory > 0) model.kv_memory = options.kv_memory;
  return model;
}

}  // namespace

// The scheduler and the coroutines belong to `loop`, which `thread` runs.
struct LocalModel::Running {
  Running(app::SingleModel single, std::int32_t max_batch)
      : loaded(std::move(single)),
        scheduler(loop, *loaded.model.language_model,
                  app::scheduler_options(loaded.model, {.max_batch = max_batch}, app::ModelOptions().block_size)),
        thread([this] { loop.run(); }) {}

  // The loop ends when the scheduler's coroutines have, and those of answers, which are told that they are over.
  ~Running() {
    asio::post(loop, [this] { scheduler.abort_remaining({ErrorCode::kCancelled, "the model is going away", ""}); });
    thread.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // On the loop.
  asio::awaitable<Result<LocalAnswer>> answer(LocalPrompt prompt, std::function<void(std::string_view)> on_text);
  // Elsewhere.
  asio::awaitable<Result<LocalAnswer>> ask(LocalPrompt prompt, std::function<void(std::string_view)> on_text) {
    asio::awaitable<Result<LocalAnswer>> answering = answer(std::move(prompt), std::move(on_text));
    co_return co_await asio::co_spawn(loop, std::move(answering), asio::use_awaitable);
  }

  app::SingleModel loaded;
  asio::io_context loop{1};
  sched::Scheduler scheduler;
  std::thread thread;
};

asio::awaitable<Result<LocalAnswer>> LocalModel::Running::answer(LocalPrompt prompt, std::function<void(std::string_view)> on_text) {
  const TextCodec& codec = *loaded.model.codec;
  ValueList messages;
  if (!prompt.system.empty()) messages.push_back(ValueDict{{"role", "system"}, {"content", std::move(prompt.system)}});
  messages.push_back(ValueDict{{"role", "user"}, {"content", std::move(prompt.text)}});
  Result<std::vector<TokenId>> tokens = app::chat_tokens(*loaded.model.codec, std::move(messages));
  if (!tokens) co_return tokens.error();
  GenerationRequest request;
  request.prompt = std::move(*tokens);
  request.sampling = std::move(prompt.sampling);
  request.stop = std::move(prompt.stop);
  Result<Ticket> ticket = scheduler.submit(std::move(request));
  if (!ticket) co_return ticket.error();
  const std::unique_ptr<StreamDecoder> decoder = codec.new_decoder();
  LocalAnswer answer;
  std::string piece;
  while (true) {
    const std::optional<TokenEvent> event = co_await (*ticket)->next();
    if (!event) continue;
    const auto* finish = std::get_if<Finish>(&*event);
    piece.clear();
    if (finish == nullptr) {
      decoder->append(std::get<Token>(*event).id, piece);
    } else {
      decoder->finish(piece);
    }
    answer.text += piece;
    if (on_text && !piece.empty()) on_text(piece);
    if (finish == nullptr) continue;
    if (finish->error) co_return *finish->error;
    answer.reason = finish->reason;
    answer.usage = finish->usage;
    co_return answer;
  }
}

LocalModel::LocalModel(std::unique_ptr<Running> running) : running_(std::move(running)) {}
LocalModel::LocalModel(LocalModel&& other) noexcept = default;
LocalModel& LocalModel::operator=(LocalModel&& other) noexcept = default;
LocalModel::~LocalModel() = default;

Result<LocalModel> LocalModel::load(const LocalModelOptions& options) {
  if (options.threads < 0 || options.max_batch < 1 || options.context < 0)
    return invalid_argument("threads and context are 0 or more, and max_batch is 1 or more");
  Result<app::SingleModel> loaded = app::load_model(model_options(options), options.max_batch, {}, false);
  if (!loaded) return loaded.error();
  return LocalModel(std::make_unique<Running>(std::move(*loaded), options.max_batch));
}

asio::awaitable<Result<LocalAnswer>> LocalModel::generate(LocalPrompt prompt, std::function<void(std::string_view)> on_text) const {
  return running_->ask(std::move(prompt), std::move(on_text));
}

std::future<Result<LocalAnswer>> LocalModel::submit(LocalPrompt prompt, std::function<void(std::string_view)> on_text) const {
  return asio::co_spawn(running_->loop, running_->answer(std::move(prompt), std::move(on_text)), asio::use_future);
}

}  // namespace braid
