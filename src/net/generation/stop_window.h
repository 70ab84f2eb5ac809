// Finds stop strings in text that arrives in pieces, and holds back no more than what may still become one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// The match that ends first wins; of those that end together, the longest. The result does not depend on how the text is cut into
// pieces. Text and stop strings are UTF-8, so what is held back begins at a character. Knuth, Morris, Pratt (1977), one automaton
// per stop string.
class StopWindow {
 public:
  explicit StopWindow(const std::vector<std::string>& stops);

  // Appends to `out` the text that no stop string can claim any more. True when a stop string has been found: `out` then ends just
  // before it, and the window must not be fed again.
  bool feed(std::string_view piece, std::string& out);

  // The text ends or is interrupted here: what is held back was no stop string.
  void flush(std::string& out);

  // The stop string that feed() found, or nothing.
  const std::string& found() const { return found_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<std::uint32_t> fallback;  // [length + 1]: the longest proper border of each prefix
    std::uint32_t matched = 0;            // how much of `text` the input ends with
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  std::string found_;
};

}  // namespace braid::net
