// The tokens of one sequence, and what it may say next judging by them and by the request's own prediction. Strand only.
#pragma once

#include "braid/speculation.h"
#include "model/drafting/match_finder.h"
#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace braid::model {

class SequenceText {
 public:
  // `known`: the start's history.
  void start(const step::SlotStart& start, std::span<const TokenId> known);
  void append(TokenId token);
  void clear();

  DraftMethod method() const { return method_; }
  // Prompt and answer so far.
  std::span<const TokenId> tokens() const { return finder_.text().subspan(predicted_); }

  // Writes what may follow; how many tokens that are.
  struct Guessed {
    std::size_t count = 0;
    DraftSource source = DraftSource::kNgram;
  };
  Guessed guess(std::span<TokenId> guesses);

 private:
  void follow(TokenId token);

  MatchFinder finder_;                 // the prediction, then the sequence
  std::size_t predicted_ = 0;          // tokens of the prediction
  std::optional<std::size_t> cursor_;  // the next of these, as long as the answer keeps to it
  DraftMethod method_ = DraftMethod::kOff;
};

}  // namespace braid::model
