// Regular expressions for what is none of some words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// The words are of letters, digits, '_', '-' and '.'; none is empty.

// A JSON string behind its opening quote, to its closing one; without escapes up to where it differs from all words.
std::string strings_but(const std::vector<std::string>& words);

// Text that begins like a name and differs from NAME( for every word, up to the character by which it does; that is none of `never`.
std::string no_call_of(const std::vector<std::string>& words, std::string_view never);

// The text itself, as a regular expression.
std::string escaped(std::string_view text);

}  // namespace braid::net
