#include "net/generation/choice_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace braid::net {

ChoiceText::ChoiceText(const TextCodec& codec, const GenerationCall& call, std::uint64_t id_seed)
    : call_(call), decoder_(codec.new_decoder()), parser_(call.syntax ? std::make_unique<AnswerParser>(*call.syntax, id_seed) : nullptr),
      window_(call.stop_strings) {}

void ChoiceText::add_prompt(PromptTokens&& tokens) {
  prompt_.insert(prompt_.end(), std::make_move_iterator(tokens.tokens.begin()), std::make_move_iterator(tokens.tokens.end()));
}

std::optional<ChoiceEnd> ChoiceText::add(Token&& token) {
  ++tokens_;
  logprob_sum_ += token.logprob;
  piece_.clear();
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
  return {has_calls() ? EndReason::kToolCalls : EndReason::kStop, {}};
}

// Whether the tokens that wait belong to text, or may turn out to.
bool ChoiceText::pending_is_text() const {
  if (!pending_.deltas.empty()) return std::holds_alternative<TextDelta>(pending_.deltas.front());
  return parser_ == nullptr || !parser_->is_silent();
}

// A client that waits for calls looks at the reason: a stop string behind them does not hide them.
ChoiceEnd ChoiceText::stopped_end() const { return {has_calls() ? EndReason::kToolCalls : EndReason::kStopString, window_.found()}; }

double ChoiceText::mean_logprob() const { return tokens_ > 0 ? logprob_sum_ / tokens_ : 0.0; }

// Markers that are control tokens count as text; the token that ends the answer does not, like a stop string.
void ChoiceText::decode(TokenId token) {
  const std::vector<TokenId>& stops = call_.stop.stop_token_ids;
  if (!call_.include_stop_string && std::find(stops.begin(), stops.end(), token) != stops.end()) return;
  decoder_->append(token, piece_);
  if (!piece_.empty() || !call_.syntax) return;
  for (const auto& [id, marker] : call_.syntax->control_markers)
    if (id == token) piece_ = marker;
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
  append_joined(pending_.deltas, std::move(delta));
  return false;
}

bool ChoiceText::say(std::string_view text) {
  if (tokens_ < call_.stop.min_tokens) {  // the answer must not end here
    append_joined(pending_.deltas, TextDelta{std::string(text)});
    return false;
  }
  TextDelta settled;
  const bool stopped = window_.feed(text, settled.text);
  if (stopped && call_.include_stop_string) settled.text += window_.found();
  append_joined(pending_.deltas, std::move(settled));
  return stopped;
}

// What the stop window holds was no stop string: nothing joins on to it.
void ChoiceText::flush() {
  TextDelta held;
  window_.flush(held.text);
  append_joined(pending_.deltas, std::move(held));
}

}  // namespace braid::net
