// Regular expressions → grammar expressions.
#pragma once

#include "braid/result.h"
#include "grammar/grammar.h"

#include <functional>
#include <string_view>

namespace braid::grammar {

struct RegexOptions {
  // Whether the text must match from end to end. Otherwise ^ and $ say where it must, and any text may stand around a match.
  bool whole = true;
  bool ignore_case = false;      // ASCII letters only
  bool dot_all = false;          // `.` matches line terminators too
  bool counts_from_zero = true;  // {,n} is {0,n} and {,} is *, as in Python; otherwise they are text, as in ECMA-262
  bool in_doubt = false;         // matches what any dialect does, not what all do
  // One character of a set, as it stands in the text.
  std::function<ExprId(const CodePointSet&)> character;
  // What stands for a place from where the rest of the text must match `body`, or must not. Empty: look-ahead and anchors in the middle
  // are refused. A body that must not match takes in what any dialect matches by it.
  std::function<ExprId(ExprId body, bool negative)> ahead = nullptr;
};

// The subset that the dialects of JavaScript, Python and Perl share: literals, `.`, classes with ranges and negation, \d \w \s \D
// \W \S (\d, \w and \s are ASCII; \D, \W and \S leave out what any dialect takes for a digit, part of a word or white space), escapes
// (\n \t \x41 \u0041 \u{1F600}), groups (also named and non-capturing), |, and * + ? {m} {m,} {m,n}, lazy or not. ^ and $ only at the
// ends of the outermost alternatives, or with `ahead` $ anywhere. Of \p those properties that stand in regex_classes.h, in part.
// Back-references, look-behind, \b, \P and flags are refused. kInvalidArgument with the position of
// what is not understood.
Result<ExprId> parse_regex(std::string_view pattern, Grammar& grammar, const RegexOptions& options);

}  // namespace braid::grammar
