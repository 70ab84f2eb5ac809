#include "net/generation/streamed_event.h"

#include <cstdint>
#include <utility>
#include <variant>

namespace braid::net {

std::optional<Failure> append_event(std::string& out, AnswerFormat& format, RunningChoices& choices, ChoiceEvent&& event,
                                    const Usage& so_far) {
  const std::uint32_t choice = event.choice;
  ChoiceText& text = choices.text(choice);
  const bool is_prompt = std::holds_alternative<PromptTokens>(event.event);
  if (!is_prompt && !text.begun()) format.append_prompt(out, choice, text.prompt(), so_far);
  Ended ended = choices.take(std::move(event));
  if (auto* failure = std::get_if<Failure>(&ended)) return std::move(*failure);
  ChoicePiece& pending = text.pending();
  for (const Delta& delta : pending.deltas) {
    format.append_delta(out, choice, delta, pending.tokens, so_far);
    pending.tokens.clear();
  }
  pending.deltas.clear();
  if (const auto* end = std::get_if<ChoiceEnd>(&ended)) {
    format.append_finish(out, choice, *end, pending.tokens, so_far);
    pending.clear();
  }
  return std::nullopt;
}

}  // namespace braid::net
