#include "app/conversation.h"

#include "app/chat_tokens.h"
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

// What the command line says, beneath the parameters of the chat: where both are silent nothing is changed.
ValueDict options_of(const RunOptions& said, const ValueDict& parameters) {
  ValueDict options{{"temperature", said.temperature},
                    {"top_p", said.top_p},
                    {"top_k", std::int64_t{said.top_k}},
                    {"min_p", said.min_p},
                    {"repeat_penalty", 1.0},
                    {"num_predict", std::int64_t{said.max_tokens > 0 ? said.max_tokens : -1}}};
  for (const auto& [name, value] : parameters)
    if (Value* known = find_member(options, name); known != nullptr)
      *known = value;
    else
      options.emplace_back(name, value);
  return options;
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
  ServedModel strict = model();
  strict.defaults.strict_parameters = true;
  const Result<net::Wish> wish = wish_for(strict, ValueDict{{name, value}});
  if (wish) return {};
  return invalid_argument(fmt::format("'{}' is no parameter, or not with that value: {}", name, wish.error().message));
}

ServedModel Conversation::model() const {
  ServedModel model;
  model.id = loaded_.id;
  model.context_length = loaded_.kv.context;
  model.codec = loaded_.codec.get();
  model.images = loaded_.eyes.reader.get();
  return model;
}

// As a server reads them, and of a chat that has nothing else.
Result<net::Wish> Conversation::wish_for(const ServedModel& model, ValueDict parameters) const {
  Value body = ValueDict{{"messages", ValueList{message("user", "")}}, {"options", std::move(parameters)}};
  return net::ollama::read_chat(body, model);
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
  const ServedModel seen = model();
  Value body = ValueDict{{"messages", std::move(messages)}};
  Result<net::Wish> wish = net::ollama::read_chat(body, seen);
  if (!wish) return wish.error();
  net::GenerationCall call(std::move(*wish));
  if (seen.images == nullptr) return net::cannot_see(seen, call, {});
  Result<std::vector<std::vector<TokenId>>> prompts = net::encode_prompts(seen, call);
  if (!prompts) return prompts.error();
  return Prompt{std::move(prompts->front()), std::move(call.media), std::move(call.pixels)};
}

asio::awaitable<Result<void>> Conversation::stream(TokenSource& tokens, const bool& interrupted, net::StopWindow& stops,
                                                   PrintedAnswer& printed) {
  const std::unique_ptr<StreamDecoder> decoder = loaded_.codec->new_decoder();
  std::string piece;
  std::string free;  // of what may be a stop string
  bool stopped = false;
  Result<void> outcome;
  while (!interrupted && !stopped) {
    const std::optional<TokenEvent> event = co_await tokens.next();
    if (!event) continue;
    const auto* finish = std::get_if<Finish>(&*event);
    piece.clear();
    free.clear();
    if (finish == nullptr)
      decoder->append(std::get<Token>(*event).id, piece);
    else
      decoder->finish(piece);
    stopped = stops.feed(piece, free);
    printed.add(free);
    if (finish == nullptr) continue;
    if (finish->error) outcome = *finish->error;
    break;
  }
  if (!stopped) {
    free.clear();
    stops.flush(free);
    printed.add(free);
  }
  co_return outcome;
}

Result<void> Conversation::run_loop(TokenSource& tokens, net::StopWindow& stops, PrintedAnswer& printed) {
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
  asio::co_spawn(loop_, stream(tokens, interrupted, stops, printed), [&](const std::exception_ptr& thrown, Result<void> result) {
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
  Result<net::Wish> wish = wish_for(model(), options_of(options_, state.parameters));
  if (!wish) return wish.error();
  Result<Prompt> prompt = prompt_for(state);
  if (!prompt) return prompt.error();
  GenerationRequest request;
  request.prompt = std::move(prompt->tokens);
  request.media = std::move(prompt->media);
  request.images = std::move(prompt->images);
  request.sampling = wish->sampling;
  if (!wish->seeded) request.sampling.seed = seed_;
  request.stop = wish->stop;
  request.stop.max_tokens = wish->max_tokens.value_or(std::numeric_limits<std::int32_t>::max());
  Result<Ticket> ticket = seeing_ ? seeing_->submit(std::move(request)) : scheduler_.submit(std::move(request));
  if (!ticket) return ticket.error();

  PrintedAnswer printed(options_.json, loaded_.id);
  net::StopWindow stops(wish->stop_strings);
  const Result<void> streamed = run_loop(**ticket, stops, printed);
  std::string spoken = printed.finish(!streamed.has_value());
  if (!streamed) return streamed.error();
  return spoken;
}

}  // namespace braid::app
