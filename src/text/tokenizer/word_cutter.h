// Cuts text into the words within which a byte-level BPE vocabulary merges, by the rules of word_rules.h.
#pragma once

#include "braid/result.h"
#include "text/tokenizer/pipeline/pattern.h"
#include "text/tokenizer/word_rules.h"

#include <string_view>
#include <vector>

namespace braid::text {

// Immutable: any thread may use it.
class WordCutter {
 public:
  static Result<WordCutter> make(const WordRules& rules);
  // One expression, as tiktoken reads it.
  static Result<WordCutter> make(std::string_view expression);

  // Appends the words of `text`; together they are the whole text, unless the rules drop white space. Bytes that are no UTF-8 are words
  // of their own where the rules are expressions.
  void cut(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  WordCutter() = default;
  void cut_valid(std::string_view text, std::vector<std::string_view>& words) const;

  std::optional<PreTokenizer> scanner_;
  std::vector<Pattern> stages_;
  bool drops_space_ = false;
};

}  // namespace braid::text
