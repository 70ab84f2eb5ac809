// The tokens of one sequence, and what it may say next judging by them, by the request's own prediction and by recent answers. Strand only.
#pragma once

#include "braid/speculation.h"
#include "model/drafting/match_finder.h"
#include "step/answer_automaton.h"
#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
  void find_prediction();
  Guessed guess_from_text(std::span<TokenId> guesses, const MatchFinder::Match& match) const;
  Guessed guess_from_answers(std::span<TokenId> guesses, std::size_t least) const;

  MatchFinder finder_;                                // the prediction, then the sequence
  std::size_t predicted_ = 0;                         // tokens of the prediction
  std::optional<std::size_t> cursor_;                 // the next of these, as long as the answer keeps to it
  step::RecentAnswers recent_;                        // null: none
  std::vector<step::AnswerAutomaton::Place> places_;  // of the text's end in each of them
  DraftMethod method_ = DraftMethod::kOff;
};

}  // namespace braid::model
