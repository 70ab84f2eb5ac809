// The fuzz target as a function, so that tests can replay its corpus.
#pragma once

#include <string_view>

namespace braid::test {

// Parses `source` as a chat template and renders it, within small limits, twice over the same conversation. Aborts when an error
// lacks its line or the two renders differ.
void fuzz_jinja(std::string_view source);

}  // namespace braid::test
