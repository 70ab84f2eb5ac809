#include "net/generation/choice_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace braid::net {

ChoiceText::ChoiceText(const TextCodec& codec, const GenerationCall& call, std::uint64_t id_seed)
    : call_(call), codec_(codec), decoder_(codec.new_decoder()),
      parser_(call.syntax ? std::make_unique<AnswerParser>(*call.syntax, id_seed) : nullptr), searches_(call.stop_searches.size(), 0),
      window_(call.stop_strings) {}

void ChoiceText::add_prompt(PromptTokens&& tokens) {
  prompt_.insert(prompt_.end(), std::make_move_iterator(tokens.tokens.begin()), std::make_move_iterator(tokens.tokens.end()));
}

std::optional<ChoiceEnd> ChoiceText::add(Token&& token) {
  ++tokens_;
  logprob_sum_ += token.logprob;
  piece_.clear();
  last_token_ = token.id;
  decode(token.id);
  const bool was_reasoning = in_reasoning();
  if (call_.return_token_ids) pending_.tokens.ids.push_back(token.id);
  if (call_.wants_logprobs()) pending_.tokens.scored.push_back(std::move(token));
  const bool stopped = feed(piece_);
  if (call_.scores_text_only && !pending_is_text()) pending_.tokens.scored.clear();
  if (was_reasoning || in_reasoning()) ++reasoning_tokens_;
  if (stopped) return stopped_end();
  if (parser_ == nullptr || !parser_->ended()) return std::nullopt;
  flush();
  return ChoiceEnd{EndReason::kToolCalls, {}};
}

ChoiceEnd ChoiceText::finish(FinishReason reason) {
  const bool cut = reason == FinishReason::kLength;
  piece_.clear();
  if (cut || call_.include_stop_string) piece_ += held_control_;
  decoder_->finish(piece_);
  bool stopped = feed(piece_);
  if (parser_ != nullptr && !stopped) {
    parsed_.clear();
    parser_->finish(cut, parsed_);
    const bool forced = call_.tools && call_.tools->required;  // what is cut off before it is told is markup of a call, no text
    if (cut && forced) std::erase_if(parsed_, [](const Delta& delta) { return std::holds_alternative<TextDelta>(delta); });
    for (Delta& delta : parsed_) stopped = stopped || settle(std::move(delta));
  }
  if (stopped) return stopped_end();
  flush();
  if (cut) return {EndReason::kLength, {}};
  ChoiceEnd end{has_calls() ? EndReason::kToolCalls : EndReason::kStop, {}};
  if (last_token_ >= 0) end.stop_token = last_token_;
  end.is_own_token = !is_stop(last_token_);
  return end;
}

// Whether the tokens that wait belong to text, or may turn out to.
bool ChoiceText::pending_is_text() const {
  if (!pending_.deltas.empty()) return std::holds_alternative<TextDelta>(pending_.deltas.front());
  return parser_ == nullptr || !parser_->is_silent();
}

// A client that waits for calls looks at the reason: a stop string behind them does not hide them.
ChoiceEnd ChoiceText::stopped_end() const {
  return {has_calls() ? EndReason::kToolCalls : EndReason::kStopString, matched_.empty() ? window_.found() : matched_};
}

double ChoiceText::mean_logprob() const { return tokens_ > 0 ? logprob_sum_ / tokens_ : 0.0; }

bool ChoiceText::is_stop(TokenId token) const {
  const std::vector<TokenId>& stops = call_.stop.stop_token_ids;
  return std::find(stops.begin(), stops.end(), token) != stops.end();
}

// Markers that are control tokens count as text; the token that ends the answer does not, like a stop string.
void ChoiceText::decode(TokenId token) {
  if (!call_.include_stop_string && is_stop(token)) return;
  if (!held_control_.empty()) piece_ += std::exchange(held_control_, {});
  const std::size_t before = piece_.size();
  decoder_->append(token, piece_);
  const bool was_control = std::exchange(after_control_, false);
  if (piece_.size() > before) return;
  if (call_.syntax) {
    for (const auto& [id, marker] : call_.syntax->control_markers) {
      if (id != token) continue;
      piece_ += marker;
      return;
    }
  }
  if (!call_.control_text || !codec_.is_silent(token)) return;
  after_control_ = true;
  held_control_ = (was_control && call_.control_spaces ? " " : "") + codec_.token_bytes(token);
}

// True when a stop string ends the text in `piece`.
bool ChoiceText::feed(std::string_view piece) {
  if (parser_ == nullptr) return say(piece);
  parsed_.clear();
  parser_->feed(piece, parsed_);
  for (Delta& delta : parsed_)
    if (settle(std::move(delta))) return true;
  return false;
}

bool ChoiceText::settle(Delta&& delta) {
  if (const auto* text = std::get_if<TextDelta>(&delta)) return say(text->text);
  flush();
  if (call_.hides_reasoning && std::holds_alternative<ReasoningDelta>(delta)) return false;
  append_joined(pending_.deltas, std::move(delta));
  return false;
}

bool ChoiceText::say(std::string_view text) {
  if (tokens_ < call_.stop.min_tokens) {  // the answer must not end here
    append_joined(pending_.deltas, TextDelta{std::string(text)});
    return false;
  }
  TextDelta settled;
  const std::optional<std::size_t> matched = find_pattern(text);
  if (matched) text = text.substr(0, *matched);
  const bool stopped = window_.feed(text, settled.text);
  if (matched && !stopped) {
    window_.flush(settled.text);
    append_joined(pending_.deltas, std::move(settled));
    return true;
  }
  matched_.clear();  // a stop string comes first
  if (stopped && call_.include_stop_string) settled.text += window_.found();
  append_joined(pending_.deltas, std::move(settled));
  return stopped;
}

// The bytes of `text` up to the end of the first match of a pattern.
std::optional<std::size_t> ChoiceText::find_pattern(std::string_view text) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < searches_.size(); ++i) {
    const std::optional<std::size_t> end = call_.stop_searches[i]->feed(searches_[i], text);
    if (!end || (first && *first <= *end)) continue;
    first = end;
    matched_ = call_.stop_patterns[i];
  }
  return first;
}

// What the stop window holds was no stop string: nothing joins on to it.
void ChoiceText::flush() {
  TextDelta held;
  window_.flush(held.text);
  append_joined(pending_.deltas, std::move(held));
}

}  // namespace braid::net
