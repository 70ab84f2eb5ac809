// The fuzz target as a function, so that tests can replay its corpus.
#pragma once

#include <string_view>

namespace braid::test {

// Parses an answer: the first byte chooses the syntax, the second how it is cut, the rest is the text. Aborts when the deltas
// depend on the cutting, calls are not numbered in order, or arguments are no JSON object.
void fuzz_stream_parser(std::string_view bytes);

}  // namespace braid::test
