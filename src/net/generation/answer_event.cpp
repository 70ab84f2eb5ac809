#include "net/generation/answer_event.h"

#include <iterator>
#include <utility>

namespace braid::net {
namespace {

// Whether `next` could be appended to `last`.
bool join(Delta& last, const Delta& next) {
  if (last.index() != next.index()) return false;
  if (auto* text = std::get_if<TextDelta>(&last)) {
    text->text += std::get<TextDelta>(next).text;
  } else if (auto* reasoning = std::get_if<ReasoningDelta>(&last)) {
    reasoning->text += std::get<ReasoningDelta>(next).text;
  } else if (auto* arguments = std::get_if<ToolCallArguments>(&last)) {
    arguments->text += std::get<ToolCallArguments>(next).text;
  } else {
    return false;
  }
  return true;
}

bool is_empty(const Delta& delta) {
  if (const auto* text = std::get_if<TextDelta>(&delta)) return text->text.empty();
  if (const auto* reasoning = std::get_if<ReasoningDelta>(&delta)) return reasoning->text.empty();
  if (const auto* arguments = std::get_if<ToolCallArguments>(&delta)) return arguments->text.empty();
  return false;
}

}  // namespace

void DeltaTokens::take(DeltaTokens& newer) {
  ids.insert(ids.end(), newer.ids.begin(), newer.ids.end());
  scored.insert(scored.end(), std::make_move_iterator(newer.scored.begin()), std::make_move_iterator(newer.scored.end()));
  newer.clear();
}

void ChoicePiece::take(ChoicePiece& newer) {
  for (Delta& delta : newer.deltas) {
    append_joined(deltas, std::move(delta));
    tokens.take(newer.tokens);
    scored_ends.resize(deltas.size());
    scored_ends.back() = tokens.scored.size();
  }
  newer.deltas.clear();
}

void append_joined(std::vector<Delta>& deltas, Delta&& delta) {
  if (is_empty(delta)) return;
  if (deltas.empty() || !join(deltas.back(), delta)) deltas.push_back(std::move(delta));
}

std::string answer_text(const std::vector<Delta>& deltas) {
  std::string text;
  for (const Delta& delta : deltas)
    if (const auto* piece = std::get_if<TextDelta>(&delta)) text += piece->text;
  return text;
}

}  // namespace braid::net
