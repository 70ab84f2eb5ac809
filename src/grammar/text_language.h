// Regular languages of characters that can be joined, intersected and complemented: for regular expressions with look-ahead, several of
// them at once, and lengths beside them.
#pragma once

#include "braid/result.h"
#include "grammar/grammar.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

namespace braid::grammar {

// Deterministic: state 0 begins, and each state has a target for each class of characters. The classes cover all characters.
struct CharacterAutomaton {
  std::vector<CodePointSet> classes;
  std::vector<std::uint32_t> targets;  // [states, classes]
  std::vector<bool> accepting;         // [states]
};

// Terms are equal when their ids are. They are never freed before the object.
class TextLanguages {
 public:
  using Id = std::uint32_t;

  TextLanguages();
  Id nothing() const { return 0; }
  Id empty() const { return 1; }     // the empty text alone
  Id anything() const { return 2; }  // every text
  Id chars(CodePointSet set);
  Id sequence(Id first, Id then);
  Id either(std::vector<Id> options);
  Id both(std::vector<Id> parts);
  Id complement(Id term);
  Id repeat(Id term, std::uint32_t min, std::uint32_t max);  // max may be kUnbounded
  Id text(std::string_view utf8);

  // A regular expression as JSON Schema searches for it, with look-ahead. Of what the dialects disagree on it matches what all do; with
  // `in_doubt` what any does, for a language that is then complemented.
  Result<Id> regex(std::string_view pattern, bool in_doubt = false);

  bool matches(Id term, std::string_view utf8);

  // kInvalidArgument when it has too many states.
  Result<CharacterAutomaton> automaton(Id term);

  // The same as an expression, with `character` for the edges. kInvalidArgument when it has too many states.
  Result<ExprId> expression(Id term, Grammar& grammar, const std::function<ExprId(const CodePointSet&)>& character);

 private:
  enum class Kind : std::uint8_t { kChars, kSequence, kEither, kBoth, kComplement, kRepeat };
  struct Term {
    Kind kind = Kind::kChars;
    std::vector<Id> parts;
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    std::uint32_t set = 0;  // in sets_
    bool nullable = false;
  };

  Id add(Term term);
  Id derivative(Id term, std::uint32_t point);       // what may follow the character
  std::vector<CodePointSet> classes(Id root) const;  // of characters that no term of `root` tells apart

  std::vector<Term> terms_;
  std::vector<CodePointSet> sets_;
  std::map<std::vector<std::uint32_t>, Id> known_;
  std::map<std::pair<Id, std::uint32_t>, Id> derivatives_;
};

}  // namespace braid::grammar
