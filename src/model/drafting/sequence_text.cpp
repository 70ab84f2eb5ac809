#include "model/drafting/sequence_text.h"

#include <algorithm>

namespace braid::model {
namespace {

// A place with little in common says little: so many tokens are taken from it for each one above the least.
constexpr std::size_t kTrust = 2;

}  // namespace

void SequenceText::clear() {
  finder_.clear();
  predicted_ = 0;
  cursor_.reset();
  method_ = DraftMethod::kOff;
}

void SequenceText::start(const step::SlotStart& start, std::span<const TokenId> known) {
  clear();
  method_ = start.speculation.method;
  if (method_ == DraftMethod::kOff) return;
  if (start.speculation.prediction != nullptr) {
    finder_.append(*start.speculation.prediction);
    predicted_ = start.speculation.prediction->size();
    cursor_ = 0;
  }
  finder_.append(known);
  for (const TokenId token : known.last(std::min(known.size(), static_cast<std::size_t>(start.generated)))) follow(token);
}

void SequenceText::append(TokenId token) {
  if (method_ == DraftMethod::kOff) return;
  finder_.append(token);
  follow(token);
}

void SequenceText::follow(TokenId token) {
  if (!cursor_) return;
  if (*cursor_ < predicted_ && finder_.text()[*cursor_] == token) {
    ++*cursor_;
  } else {
    cursor_.reset();
  }
}

SequenceText::Guessed SequenceText::guess(std::span<TokenId> guesses) {
  const bool looks_up = method_ == DraftMethod::kAuto || method_ == DraftMethod::kNgram;
  std::size_t most = guesses.size();
  if (!cursor_ || *cursor_ == predicted_) {
    if (!looks_up && predicted_ == 0) return {};
    const MatchFinder::Match match = finder_.find();
    if (match.common == 0 || (!looks_up && match.next >= predicted_)) return {};
    most = std::min(most, (match.common - MatchFinder::kGram + 1) * kTrust);
    cursor_.reset();
    if (match.next < predicted_) {
      cursor_ = match.next;  // the answer has come back to its prediction
    } else {
      // What has come round to the text's end goes on with what is guessed.
      const std::span<const TokenId> text = finder_.text();
      for (std::size_t i = 0; i < most; ++i) {
        const std::size_t from = match.next + i;
        guesses[i] = from < text.size() ? text[from] : guesses[from - text.size()];
      }
      return {most, DraftSource::kNgram};
    }
  }
  const std::span<const TokenId> rest = finder_.text().first(predicted_).subspan(*cursor_);
  most = std::min(most, rest.size());
  std::copy_n(rest.begin(), most, guesses.begin());
  return {most, DraftSource::kPrediction};
}

}  // namespace braid::model
