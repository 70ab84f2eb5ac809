// What a model gives of a text besides, or instead of, an answer: vectors and scores.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace braid {

struct VectorRules {
  std::int64_t width = 0;                                    // numbers of a vector
  bool unit_length = true;                                   // unless a request says otherwise
  std::vector<std::int64_t> dimensions;                      // to which vectors may be cut; empty: any up to the width
  std::vector<std::pair<std::string, std::string>> prompts;  // words that go before a text, by name
  std::string default_prompt;                                // name of those that do if a request names none; empty: none do
  std::vector<std::string> tasks;  // for which the model has weights of their own; words of that name go before too

  const std::string* prompt(const std::string& name) const {
    for (const auto& [own, text] : prompts)
      if (own == name) return &text;
    return nullptr;
  }
};

enum class ScoreActivation : std::uint8_t { kNone, kSigmoid, kSoftmax };

// A head for classes.
struct ClassRules {
  std::vector<std::string> labels;                         // empty: the model has none
  ScoreActivation activation = ScoreActivation::kSoftmax;  // from its scores to probabilities
  ScoreActivation relevance = ScoreActivation::kSigmoid;   // from the score of its only label to that of a pair of texts

  explicit operator bool() const { return !labels.empty(); }
};

// How a model reads two texts of which it says how well they fit.
enum class PairForm : std::uint8_t {
  kPair,      // as its tokenizer joins them
  kJudgment,  // in a chat that asks for "yes" or "no", as Qwen3-Reranker was trained
};

}  // namespace braid
