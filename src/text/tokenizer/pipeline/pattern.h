// What a component of a tokenizer looks for in a text: a string, or a regular expression.
#pragma once

#include "braid/result.h"
#include "text/tokenizer/pipeline/config_node.h"
#include "text/tokenizer/pipeline/digit_groups.h"
#include "text/tokenizer/pipeline/piece_list.h"
#include "text/tokenizer/pre_tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

enum class RegexDialect {
  kOniguruma,  // Ruby's syntax: the tokenizers library
  kPerl,       // tiktoken
};

// Immutable: any thread may search.
class Pattern {
 public:
  static Pattern from_text(std::string text);
  // kUnsupported with a sentence when the expression cannot be compiled.
  static Result<Pattern> from_regex(std::string_view expression, RegexDialect dialect = RegexDialect::kOniguruma);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Buffers of searches, to be reused from text to text. One thread at a time.
  class Searcher {
   public:
    explicit Searcher(const Pattern& pattern);
    Searcher(const Searcher&) = delete;
    Searcher& operator=(const Searcher&) = delete;
    ~Searcher();
    // Appends the spans of `text`, which must be valid UTF-8. An expression whose search grows beyond PCRE2's limits finds nothing more
    // in this text.
    void find(std::string_view text, std::vector<TextSpan>& spans);

   private:
    struct Buffers;
    bool match(std::string_view text, std::size_t from, TextSpan& found);
    void find_words(std::string_view text, std::vector<TextSpan>& spans);

    const Pattern& pattern_;
    std::unique_ptr<Buffers> buffers_;
    std::vector<std::string_view> words_;
  };

 private:
  struct Compiled;
  Pattern();

  std::string text_;                   // empty: an expression
  std::optional<PreTokenizer> words_;  // the expression is that of these rules, which are quicker
  std::optional<DigitGroups> digits_;  // likewise
  std::unique_ptr<const Compiled> compiled_;
};

// The member "pattern" of a component. Nothing when it is none: the fault is then in the node.
std::optional<Pattern> read_pattern(const ConfigNode& node);

}  // namespace braid::text
