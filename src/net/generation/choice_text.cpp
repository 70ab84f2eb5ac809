#include <net/generation/choice_text.h>

#include <utility>

namespace braid::net {

ChoiceText::ChoiceText(const TextCodec& codec, const GenerationCall& call)
    : decoder_(codec.new_decoder()),
      window_(call.stop_strings),
      keep_ids_(call.return_token_ids),
      keep_logprobs_(call.wants_logprobs()) {}

std::optional<ChoiceEnd> ChoiceText::add(Token&& token) {
  piece_.clear();
  decoder_->append(token.id, piece_);
  if (keep_ids_) pending_.tokens.ids.push_back(token.id);
  if (keep_logprobs_) pending_.tokens.scored.push_back(std::move(token));
  if (feed_text(piece_)) return ChoiceEnd{EndReason::kStopString, window_.found()};
  return std::nullopt;
}

ChoiceEnd ChoiceText::finish(FinishReason reason) {
  piece_.clear();
  decoder_->finish(piece_);
  if (feed_text(piece_)) return {EndReason::kStopString, window_.found()};
  std::string rest;
  window_.flush(rest);
  append_joined(pending_.deltas, TextDelta{std::move(rest)});
  return {reason == FinishReason::kLength ? EndReason::kLength : EndReason::kStop, {}};
}

bool ChoiceText::feed_text(std::string_view text) {
  TextDelta delta;
  const bool stopped = window_.feed(text, delta.text);
  append_joined(pending_.deltas, std::move(delta));
  return stopped;
}

}  // namespace braid::net
