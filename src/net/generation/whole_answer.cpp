#include "net/generation/whole_answer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

namespace braid::net {
namespace {

// A prompt is scored for its first candidate only, unless the answer is streamed: then none waits for another.
void share_prompt_scores(std::vector<ChoiceAnswer>& answers, std::size_t candidates) {
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (i % candidates != 0) answers[i].prompt = answers[i - i % candidates].prompt;
}

std::vector<ChoiceAnswer> best_of(std::vector<ChoiceAnswer> answers, std::ptrdiff_t candidates, std::ptrdiff_t choices) {
  if (candidates <= choices) return answers;
  std::vector<ChoiceAnswer> best;
  for (auto group = answers.begin(); group != answers.end(); group += candidates) {
    std::stable_sort(group, group + candidates, [](const auto& a, const auto& b) { return a.mean_logprob > b.mean_logprob; });
    std::move(group, group + choices, std::back_inserter(best));
  }
  return best;
}

}  // namespace

std::optional<Failure> WholeAnswer::add(RunningChoices& choices, ChoiceEvent&& event) {
  const std::uint32_t choice = event.choice;
  Ended ended = choices.take(std::move(event));
  if (auto* failure = std::get_if<Failure>(&ended)) return std::move(*failure);
  ChoiceText& text = choices.text(choice);
  ChoicePiece& piece = gathered_[choice].piece;
  piece.take(text.pending());
  if (auto* end = std::get_if<ChoiceEnd>(&ended)) {
    piece.tokens.take(text.pending().tokens);
    gathered_[choice] = {std::move(piece), std::move(*end), std::move(text.prompt()), text.mean_logprob(),
                         std::move(choices.vector(choice))};
  }
  return std::nullopt;
}

std::vector<ChoiceAnswer> WholeAnswer::take(const GenerationCall& call) {
  share_prompt_scores(gathered_, static_cast<std::size_t>(call.candidates));
  return best_of(std::move(gathered_), call.candidates, call.choices);
}

}  // namespace braid::net
