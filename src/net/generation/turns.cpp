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

// Parts of the conversation that may be left out: its front, and of what stays the oldest answers with what their calls gave.
struct Cut {
  std::size_t end;        // of the front
  std::size_t inner_end;  // of the answers, which begin with the first one behind the front; 0: none of them
};

// From few to most: what stands before the first turn, whole turns, and of the last one, where it is all there is, its answers but the last.
std::vector<Cut> cuts_of(const ValueList& messages) {
  const std::vector<std::size_t> turns = find_turns(messages);
  const std::size_t last = turns.empty() ? 0 : turns.back();
  std::vector<std::size_t> answers;  // of the last turn
  for (std::size_t i = last; i < messages.size(); ++i)
    if (has_role(messages[i], "assistant")) answers.push_back(i);
  std::vector<Cut> cuts;
  for (const std::size_t turn : turns)
    if (turn > 0) cuts.push_back({turn, 0});
  for (const std::size_t answer : answers)
    if (answer > answers.front()) cuts.push_back(turns.empty() ? Cut{answer, 0} : Cut{last, answer});
  return cuts;
}

// What rules the whole conversation stays, wherever it was said.
void erase_unruling(ValueList& messages, std::size_t begin, std::size_t end) {
  const auto at = [&messages](std::size_t index) { return messages.begin() + static_cast<std::ptrdiff_t>(index); };
  const auto kept = std::stable_partition(
      at(begin), at(end), [](const Value& message) { return has_role(message, "system") || has_role(message, "developer"); });
  messages.erase(kept, at(end));
}

ChatPrompt without(const ChatPrompt& whole, const Cut& cut) {
  ChatPrompt rest = whole;
  auto& messages = *rest.messages.get_if<ValueList>();
  if (cut.inner_end > 0) {
    std::size_t first = cut.end;  // the first answer of the last turn
    while (!has_role(messages[first], "assistant")) ++first;
    erase_unruling(messages, first, cut.inner_end);
  }
  erase_unruling(messages, 0, cut.end);
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
  Result<Prompts> prompts = encode_prompts(model, call);
  if (!prompts || prompts->front().size() < context) return prompts;
  const std::vector<Cut> cuts = cuts_of(*whole.messages.get_if<ValueList>());
  if (cuts.empty()) return prompts;
  const auto encode = [&](std::size_t number) {
    call.prompt = without(whole, cuts[number - 1]);
    return encode_prompts(model, call);
  };
  const std::size_t room = room_of(call, model.context_length);
  std::size_t too_few = 0;
  std::size_t enough = cuts.size();  // or all that may be dropped
  while (enough - too_few > 1) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    prompts = encode(middle);
    if (!prompts) return prompts;
    (prompts->front().size() + room <= context ? enough : too_few) = middle;
  }
  return encode(enough);
}

}  // namespace braid::net
