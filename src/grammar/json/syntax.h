// The parts of JSON text as expressions of a grammar.
#pragma once

#include "braid/value.h"
#include "grammar/grammar.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::grammar::json {

// White space is bounded, so that generation cannot go on for ever in it: nothing, a space, or a new line with up to kMaxIndent
// blanks after `{`, `[` and `,` and before `}` and `]`; nothing or a space after `:`; none elsewhere. Numbers have a bounded number
// of digits.
class Syntax {
 public:
  static constexpr std::uint32_t kMaxIndent = 32;

  explicit Syntax(Grammar& grammar) : grammar_(grammar) {}

  ExprId value();   // any JSON value
  ExprId object();  // any object
  ExprId array();   // any array
  ExprId string();  // any string: valid UTF-8, valid escapes, no lone surrogates
  ExprId number();
  ExprId integer();  // no fraction, no exponent
  ExprId boolean();
  ExprId null();

  ExprId string_of_length(std::uint32_t min, std::uint32_t max);  // in code points
  ExprId quoted(ExprId content);
  // One character of `set` as it stands in a string: the shortest escape where one is needed.
  ExprId string_character(const CodePointSet& set);
  // A string that is none of `names`; without \u escapes, so that no other spelling of a name passes.
  ExprId string_except(const std::vector<std::string>& names);

  // Exactly this value, with free white space.
  ExprId constant(const Value& value);

  ExprId space();  // the white space between brackets and commas
  ExprId comma();  // with the space after it
  ExprId member(ExprId key, ExprId value);
  ExprId braces(ExprId members);  // {…}; `members` is not empty
  ExprId empty_braces();
  ExprId brackets(ExprId elements);
  ExprId empty_brackets();

 private:
  // Of each of these a grammar has one.
  ExprId once(std::optional<ExprId>& kept, const char* name, const std::function<ExprId()>& make);
  ExprId any_character();
  ExprId escaped_unit();
  ExprId except(const std::vector<std::u32string>& names, std::size_t depth);
  ExprId list(ExprId item);

  Grammar& grammar_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ExprId> strings_;  // by length
  std::optional<ExprId> value_, object_, array_, string_, number_, integer_, space_, character_, plain_tail_;
};

// `text` as a JSON string with its quotation marks.
std::string quote(std::string_view text);

}  // namespace braid::grammar::json
