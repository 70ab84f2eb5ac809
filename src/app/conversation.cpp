#include "app/conversation.h"

#include "app/chat_tokens.h"
#include "app/cli/model.h"
#include "app/sight.h"
#include "net/generation/prompts.h"
#include "net/generation/shown_images.h"
#include "net/ollama/request.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <optional>
#include <random>
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
    : loaded_(loaded), options_(options), seed_(options.seed.value_or(draw_seed())), strand_(loop_),
      scheduler_(loop_, strand_, *loaded.language_model, scheduler_options(loaded, kSingleUser, options.model.block_size)),
      seeing_(
          make_seeing(loop_, strand_, loaded, kSingleUser, scheduler_, scheduler_options(loaded, kSingleUser, options.model.block_size))) {}

Conversation::~Conversation() {
  const Error over{ErrorCode::kCancelled, "the conversation is over", {}};
  seeing_ ? seeing_->abort_remaining(over) : scheduler_.abort_remaining(over);
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

Result<Conversation::Prompt> Conversation::prompt_for(const ChatState& state) const {
  ValueList messages = state.messages;
  if (!state.system.empty()) messages.insert(messages.begin(), message("system", state.system));
  const auto shows = [](const Value& one) { return one.find("images") != nullptr; };
  if (std::ranges::any_of(messages, shows)) return prompt_with_images(std::move(messages));
  Result<std::vector<TokenId>> tokens = chat_tokens(*loaded_.codec, std::move(messages));
  if (!tokens) return tokens.error();
  return Prompt{std::move(*tokens)};
}

// As a server makes it of the same messages.
Result<Conversation::Prompt> Conversation::prompt_with_images(ValueList messages) const {
  ServedModel model;
  model.id = loaded_.id;
  model.context_length = loaded_.kv.context;
  model.codec = loaded_.codec.get();
  model.images = loaded_.eyes.reader.get();
  Value body = ValueDict{{"messages", std::move(messages)}};
  Result<net::Wish> wish = net::ollama::read_chat(body, model);
  if (!wish) return wish.error();
  net::GenerationCall call(std::move(*wish));
  if (model.images == nullptr) return net::cannot_see(model, call, {});
  Result<std::vector<std::vector<TokenId>>> prompts = net::encode_prompts(model, call);
  if (!prompts) return prompts.error();
  return Prompt{std::move(prompts->front()), std::move(call.media), std::move(call.pixels)};
}

asio::awaitable<Result<void>> Conversation::stream(TokenSource& tokens, const bool& interrupted, PrintedAnswer& printed) {
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
    printed.add(piece);
    if (finish != nullptr && finish->error) co_return *finish->error;
    if (finish != nullptr) break;
  }
  co_return Result<void>();
}

Result<void> Conversation::run_loop(TokenSource& tokens, PrintedAnswer& printed) {
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
  asio::co_spawn(loop_, stream(tokens, interrupted, printed), [&](const std::exception_ptr& thrown, Result<void> result) {
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
  Result<Prompt> prompt = prompt_for(state);
  if (!prompt) return prompt.error();
  GenerationRequest request;
  request.prompt = std::move(prompt->tokens);
  request.media = std::move(prompt->media);
  request.images = std::move(prompt->images);
  request.sampling.temperature = static_cast<float>(options_.temperature);
  request.sampling.top_p = static_cast<float>(options_.top_p);
  request.sampling.top_k = options_.top_k;
  request.sampling.min_p = static_cast<float>(options_.min_p);
  request.sampling.seed = seed_;
  request.stop.max_tokens = options_.max_tokens > 0 ? options_.max_tokens : std::numeric_limits<std::int32_t>::max();
  for (const auto& [name, value] : state.parameters) set_parameter(request, name, value);
  Result<Ticket> ticket = seeing_ ? seeing_->submit(std::move(request)) : scheduler_.submit(std::move(request));
  if (!ticket) return ticket.error();

  PrintedAnswer printed(options_.json, loaded_.id);
  const Result<void> streamed = run_loop(**ticket, printed);
  std::string spoken = printed.finish(!streamed.has_value());
  if (!streamed) return streamed.error();
  return spoken;
}

}  // namespace braid::app
