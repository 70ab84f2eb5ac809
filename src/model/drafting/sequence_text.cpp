#include "model/drafting/sequence_text.h"

#include <algorithm>

namespace braid::model {
namespace {

// A place with little in common says little: so many tokens are taken from it for each one above the least.
constexpr std::size_t kTrust = 2;

std::size_t trusted(std::size_t common, std::size_t room) { return std::min(room, (common - MatchFinder::kGram + 1) * kTrust); }

}  // namespace

void SequenceText::clear() {
  finder_.clear();
  predicted_ = 0;
  cursor_.reset();
  recent_.reset();
  places_.clear();
  method_ = DraftMethod::kOff;
}

void SequenceText::start(const step::SlotStart& start, std::span<const TokenId> known) {
  clear();
  method_ = start.speculation.method;
  if (method_ == DraftMethod::kOff) return;
  if (start.speculation.prediction != nullptr) {
    finder_.append(*start.speculation.prediction);
    predicted_ = start.speculation.prediction->size();
  }
  finder_.append(known);
  if (method_ == DraftMethod::kAuto || method_ == DraftMethod::kSuffix) recent_ = start.recent;
  if (recent_ != nullptr) places_.resize(recent_->size());
  const std::size_t answer = known.size() - std::min(known.size(), static_cast<std::size_t>(start.generated));
  const std::size_t tail = answer - std::min(answer, MatchFinder::kMostCommon);
  for (const TokenId token : known.subspan(tail, answer - tail)) follow(token);
  if (predicted_ > 0) cursor_ = 0;
  for (const TokenId token : known.subspan(answer)) follow(token);
}

void SequenceText::append(TokenId token) {
  if (method_ == DraftMethod::kOff) return;
  finder_.append(token);
  follow(token);
}

void SequenceText::follow(TokenId token) {
  for (std::size_t i = 0; i < places_.size(); ++i) places_[i] = (*recent_)[i]->advance(places_[i], token);
  if (!cursor_) return;
  if (*cursor_ < predicted_ && finder_.text()[*cursor_] == token) {
    ++*cursor_;
  } else {
    cursor_.reset();
  }
}

SequenceText::Guessed SequenceText::guess(std::span<TokenId> guesses) {
  const bool looks_up = method_ == DraftMethod::kAuto || method_ == DraftMethod::kNgram;
  if (!cursor_ || *cursor_ == predicted_) {
    cursor_.reset();
    const MatchFinder::Match match = looks_up || predicted_ > 0 ? finder_.find() : MatchFinder::Match{};
    if (match.common == 0 || match.next >= predicted_) {
      const std::size_t common = looks_up ? match.common : 0;
      const Guessed from_answers = guess_from_answers(guesses, std::max(common + 1, MatchFinder::kGram));
      return from_answers.count > 0 || common == 0 ? from_answers : guess_from_text(guesses, match);
    }
    cursor_ = match.next;  // the answer has come back to its prediction
    guesses = guesses.first(trusted(match.common, guesses.size()));
  }
  const std::span<const TokenId> rest = finder_.text().first(predicted_).subspan(*cursor_);
  const std::size_t count = std::min(guesses.size(), rest.size());
  std::copy_n(rest.begin(), count, guesses.begin());
  return {count, DraftSource::kPrediction};
}

// What has come round to the text's end goes on with what is guessed.
SequenceText::Guessed SequenceText::guess_from_text(std::span<TokenId> guesses, const MatchFinder::Match& match) const {
  const std::size_t count = trusted(match.common, guesses.size());
  const std::span<const TokenId> text = finder_.text();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = match.next + i;
    guesses[i] = from < text.size() ? text[from] : guesses[from - text.size()];
  }
  return {count, DraftSource::kNgram};
}

// Of the latest answer that has most in common with the text's end, and `least` tokens at least.
SequenceText::Guessed SequenceText::guess_from_answers(std::span<TokenId> guesses, std::size_t least) const {
  std::span<const TokenId> best;
  std::size_t common = least - 1;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].length <= common) continue;
    const std::span<const TokenId> after = (*recent_)[i]->after(places_[i]);
    if (after.empty()) continue;
    common = places_[i].length;
    best = after;
  }
  if (best.empty()) return {};
  const std::size_t count = std::min(best.size(), trusted(common, guesses.size()));
  std::copy_n(best.begin(), count, guesses.begin());
  return {count, DraftSource::kSuffix};
}

}  // namespace braid::model
