#include "app/conversation.h"

#include "app/chat_tokens.h"
#include "app/cli/model.h"
#include "braid/printable.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <unistd.h>
#include <utility>
#include <variant>

namespace braid::app {
namespace {

namespace asio = boost::asio;

Value message(const char* role, const std::string& content) { return ValueDict{{"role", role}, {"content", content}}; }

// The parameters that hold here, by Ollama's names; false: it is none of them, or the value is none of its.
bool set_parameter(GenerationRequest& request, const std::string& name, const Value& value) {
  const std::optional<double> number = value.number();
  const auto* whole = value.get_if<std::int64_t>();
  SamplingParams& sampling = request.sampling;
  if (name == "num_predict" && whole != nullptr && *whole <= kMostTokens) {
    request.stop.max_tokens = *whole > 0 ? static_cast<std::int32_t>(*whole) : std::numeric_limits<std::int32_t>::max();
  } else if (name == "seed" && whole != nullptr && *whole >= 0) {
    sampling.seed = static_cast<std::uint64_t>(*whole);
  } else if (name == "top_k" && whole != nullptr && *whole >= 0 && *whole <= kMostTokens) {
    sampling.top_k = static_cast<std::int32_t>(*whole);
  } else if (name == "temperature" && number && *number >= 0 && *number <= 100) {
    sampling.temperature = static_cast<float>(*number);
  } else if (name == "top_p" && number && *number >= 0 && *number <= 1) {
    sampling.top_p = static_cast<float>(*number);
  } else if (name == "min_p" && number && *number >= 0 && *number <= 1) {
    sampling.min_p = static_cast<float>(*number);
  } else if (name == "repeat_penalty" && number && *number > 0 && *number <= 10) {
    sampling.repetition_penalty = static_cast<float>(*number);
  } else {
    return false;
  }
  return true;
}

std::uint64_t draw_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

Conversation::Conversation(const LoadedModel& loaded, const RunOptions& options)
    : loaded_(loaded), options_(options), is_terminal_(::isatty(STDOUT_FILENO) == 1), seed_(options.seed.value_or(draw_seed())),
      scheduler_(loop_, *loaded.language_model, scheduler_options(loaded, kSingleUser, options.model.block_size)) {}

Conversation::~Conversation() {
  scheduler_.abort_remaining({ErrorCode::kCancelled, "the conversation is over", {}});
  loop_.restart();
  loop_.run();  // until the scheduler's coroutine has ended
}

Result<void> Conversation::check_parameter(const std::string& name, const Value& value) const {
  GenerationRequest unused;
  if (set_parameter(unused, name, value)) return {};
  return invalid_argument(fmt::format(
      "'{}' is no parameter here, or not with that value; there are temperature, top_p, top_k, min_p, repeat_penalty, num_predict and seed",
      name));
}

Result<std::vector<TokenId>> Conversation::prompt_for(const ChatState& state) const {
  for (const Value& one : state.messages)
    if (one.find("images") != nullptr)
      return invalid_argument(
          "images are shown to a model that a server has: braid serve MODEL, then braid run --host http://127.0.0.1:8000");
  ValueList messages = state.messages;
  if (!state.system.empty()) messages.insert(messages.begin(), message("system", state.system));
  return chat_tokens(*loaded_.codec, std::move(messages));
}

asio::awaitable<Result<void>> Conversation::stream(TokenSource& tokens, const bool& interrupted, std::string& spoken) {
  const std::unique_ptr<StreamDecoder> decoder = loaded_.codec->new_decoder();
  std::string piece;
  while (!interrupted) {
    const std::optional<TokenEvent> event = co_await tokens.next();
    if (!event) continue;
    const auto* finish = std::get_if<Finish>(&*event);
    piece.clear();
    if (finish == nullptr)
      decoder->append(std::get<Token>(*event).id, piece);
    else
      decoder->finish(piece);
    fmt::print("{}", is_terminal_ ? printable(piece, "\n\t") : piece);  // what a model writes steers no terminal
    std::fflush(stdout);
    spoken += piece;
    if (finish != nullptr && finish->error) co_return *finish->error;
    if (finish != nullptr) break;
  }
  co_return Result<void>();
}

Result<void> Conversation::run_loop(TokenSource& tokens, std::string& spoken) {
  bool interrupted = false;
  std::optional<Result<void>> outcome;
  std::exception_ptr failure;
  loop_.restart();
  // Only while an answer runs does Ctrl-C mean its end; at the prompt it ends the program.
  asio::signal_set interrupt(loop_, SIGINT);
  interrupt.async_wait([&](const boost::system::error_code& error, int) {
    if (error) return;
    interrupted = true;
    tokens.wake();
  });
  asio::co_spawn(loop_, stream(tokens, interrupted, spoken), [&](const std::exception_ptr& thrown, Result<void> result) {
    failure = thrown;
    outcome = std::move(result);
  });
  while (!outcome) loop_.run_one();
  interrupt.cancel();
  loop_.poll();  // its handler refers to what ends here
  if (failure) std::rethrow_exception(failure);
  return *outcome;
}

Result<std::string> Conversation::answer(const ChatState& state) {
  Result<std::vector<TokenId>> prompt = prompt_for(state);
  if (!prompt) return prompt.error();
  GenerationRequest request;
  request.prompt = std::move(*prompt);
  request.sampling.temperature = static_cast<float>(options_.temperature);
  request.sampling.top_p = static_cast<float>(options_.top_p);
  request.sampling.top_k = options_.top_k;
  request.sampling.min_p = static_cast<float>(options_.min_p);
  request.sampling.seed = seed_;
  request.stop.max_tokens = options_.max_tokens > 0 ? options_.max_tokens : std::numeric_limits<std::int32_t>::max();
  for (const auto& [name, value] : state.parameters) set_parameter(request, name, value);
  Result<Ticket> ticket = scheduler_.submit(std::move(request));
  if (!ticket) return ticket.error();

  std::string spoken;
  const Result<void> streamed = run_loop(**ticket, spoken);
  fmt::print("\n");
  if (!streamed) return streamed.error();
  return spoken;
}

}  // namespace braid::app
