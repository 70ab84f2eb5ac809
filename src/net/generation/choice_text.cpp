#include <net/generation/choice_text.h>

#include <utility>

namespace braid::net {

ChoiceText::ChoiceText(const TextCodec& codec, const GenerationCall& call)
    : decoder_(codec.new_decoder()),
      window_(call.stop_strings),
      keep_ids_(call.return_token_ids),
      keep_logprobs_(call.wants_logprobs()) {}

bool ChoiceText::add(Token&& token) {
  piece_.clear();
  decoder_->append(token.id, piece_);
  if (keep_ids_) pending_.token_ids.push_back(token.id);
  if (keep_logprobs_) pending_.logprobs.push_back(std::move(token));
  return window_.feed(piece_, pending_.text);
}

bool ChoiceText::finish() {
  piece_.clear();
  decoder_->finish(piece_);
  if (window_.feed(piece_, pending_.text)) return true;
  window_.flush(pending_.text);
  return false;
}

}  // namespace braid::net
