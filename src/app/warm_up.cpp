#include "app/warm_up.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace braid::app {

boost::asio::awaitable<Result<void>> warm_up(Engine& engine, std::int32_t context_length, std::int32_t prompt_tokens) {
  constexpr std::int32_t kAnswerTokens = 4;
  GenerationRequest request;
  request.id = "warm-up";
  request.prompt.assign(static_cast<std::size_t>(std::clamp(context_length - kAnswerTokens, 1, prompt_tokens)), TokenId{0});
  request.stop.max_tokens = kAnswerTokens;
  request.stop.ignore_eos = true;
  Result<Ticket> ticket = engine.submit(std::move(request));
  if (!ticket) co_return ticket.error();
  for (;;) {
    const std::optional<TokenEvent> event = co_await (*ticket)->next();
    if (!event) continue;
    if (const auto* finish = std::get_if<Finish>(&*event)) {
      if (finish->error) co_return *finish->error;
      co_return Result<void>();
    }
  }
}

}  // namespace braid::app
