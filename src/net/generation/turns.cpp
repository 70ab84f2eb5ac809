#include "net/generation/turns.h"

#include "net/generation/prompts.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace braid::net {
namespace {

using Prompts = std::vector<std::vector<TokenId>>;

bool has_role(const Value& message, const char* role) {
  const Value* own = message.find("role");
  return own != nullptr && *own == Value(role);
}

// Without the first `dropped` turns.
ChatPrompt without_turns(const ChatPrompt& whole, const std::vector<std::size_t>& turns, std::size_t dropped) {
  ChatPrompt rest = whole;
  if (dropped == 0) return rest;
  auto& messages = *rest.messages.get_if<ValueList>();
  const auto at = [&messages](std::size_t index) { return messages.begin() + static_cast<std::ptrdiff_t>(index); };
  // What rules the whole conversation stays, wherever it was said.
  const auto kept = std::stable_partition(at(turns.front()), at(turns[dropped]), [](const Value& message) {
    return has_role(message, "system") || has_role(message, "developer");
  });
  messages.erase(kept, at(turns[dropped]));
  return rest;
}

// Tokens that an answer should have, once turns are dropped at all: not each new message should cost one.
std::size_t room_of(const GenerationCall& call, std::int32_t context) {
  const std::int32_t quarter = context / 4;
  return static_cast<std::size_t>(std::min(call.max_tokens.value_or(quarter), quarter));
}

}  // namespace

std::vector<std::size_t> find_turns(const ValueList& messages) {
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (has_role(messages[i], "user") && (i == 0 || !has_role(messages[i - 1], "user"))) turns.push_back(i);
  return turns;
}

Result<Prompts> encode_last_turns(const ServedModel& model, GenerationCall& call) {
  const auto context = static_cast<std::size_t>(model.context_length);
  const ChatPrompt whole = std::get<ChatPrompt>(call.prompt);
  Result<Prompts> prompts = encode_prompts(*model.codec, call);
  if (!prompts || prompts->front().size() < context) return prompts;
  const std::vector<std::size_t> turns = find_turns(*whole.messages.get_if<ValueList>());
  const auto encode = [&](std::size_t dropped) {
    call.prompt = without_turns(whole, turns, dropped);
    return encode_prompts(*model.codec, call);
  };
  const std::size_t room = room_of(call, model.context_length);
  std::size_t too_few = 0;
  std::size_t enough = turns.empty() ? 0 : turns.size() - 1;  // or all that may be dropped
  if (enough == 0) return prompts;
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    prompts = encode(middle);
    if (!prompts) return prompts;
    (prompts->front().size() + room <= context ? enough : too_few) = middle;
  }
  return encode(enough);
}

}  // namespace braid::net
