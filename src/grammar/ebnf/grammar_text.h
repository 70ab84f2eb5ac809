// Grammars that requests write as text → grammar expressions.
#pragma once

#include "braid/result.h"
#include "grammar/code_points.h"
#include "grammar/grammar.h"

#include <functional>
#include <string_view>

namespace braid::grammar {

// GBNF, llama.cpp's notation: `name ::= …` with "literals", [classes], `.`, groups, | and the quantifiers * + ? {m} {m,} {m,n};
// comments from # to the line's end. The text must match `root`.
Result<ExprId> parse_gbnf(std::string_view text, Grammar& grammar);

// A subset of Lark's notation: rules and TERMINALS `name: …` with "literals" (also "…"i), /regular expressions/ (flags i, s),
// ranges "a".."z", groups, [optional parts], |, * + ? ~n ~n..m, `-> alias`, priorities, comments from // or #; %import common.NAME and
// %ignore. Before each terminal one match of what is ignored may stand. The text must match `start`. %declare, %override, %extend
// and templates are refused. `character` is one character of a set as it stands in the text; empty: as it is.
using CharacterOf = std::function<ExprId(const CodePointSet&)>;
Result<ExprId> parse_lark(std::string_view text, Grammar& grammar, CharacterOf character = nullptr);

// Either, told apart by whether a name and "::=" come first. Rules may begin with themselves directly. kInvalidArgument with the line of
// what is not understood.
Result<ExprId> parse_grammar_text(std::string_view text, Grammar& grammar);

}  // namespace braid::grammar
