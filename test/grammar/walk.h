// Drives constraints the way a sampler does, over a small vocabulary.
#pragma once

#include "grammar/compiler.h"

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {

inline constexpr TokenId kEnd = 0;  // the end-of-sequence token of toy_tokens()

// All single bytes, pieces of JSON and words, halves of UTF-8 characters, two control tokens: kEnd and "<tool>".
std::vector<grammar::VocabularyToken> toy_tokens();
const grammar::Compiler& toy_compiler();

ConstraintSpec schema_spec(std::string json, bool strict = true);  // path "schema"
std::shared_ptr<const Constraint> compile_or_die(const ConstraintSpec& spec);

// The tokens that may come next, in order.
std::vector<TokenId> allowed_tokens(ConstraintState& state);

// Which tokens the automaton reads from where `text` has brought it, found without masks.
std::vector<TokenId> readable_tokens(const Constraint& constraint, std::string_view text);

// A text of tokens drawn uniformly from those allowed. After `free_tokens` the walk mostly takes what brings JSON to its end, and
// ends where it may; it gives up after `most_tokens`, or where nothing is allowed.
struct Walk {
  std::string text;
  bool ended = false;
};
Walk random_walk(const Constraint& constraint, std::mt19937& random, std::size_t free_tokens = 60, std::size_t most_tokens = 4000);

// Whether the constraint allows the text, byte by byte, and its end there.
bool accepts(const Constraint& constraint, std::string_view text);

}  // namespace braid::test
