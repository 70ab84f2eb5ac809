// Sets of Unicode scalar values, and the UTF-8 byte sequences that encode them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::grammar {

inline constexpr std::uint32_t kMaxCodePoint = 0x10FFFF;

struct CodePointRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;  // inclusive
  bool operator==(const CodePointRange&) const = default;
};

// Sorted, disjoint, not adjacent; never holds a surrogate, which UTF-8 cannot encode.
class CodePointSet {
 public:
  CodePointSet() = default;
  explicit CodePointSet(std::vector<CodePointRange> ranges);
  static CodePointSet all() { return CodePointSet({{0, kMaxCodePoint}}); }
  static CodePointSet of(std::string_view ascii);

  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint32_t point) const;
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

  CodePointSet complement() const;
  CodePointSet united(const CodePointSet& other) const;
  CodePointSet without(const CodePointSet& other) const;

  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<CodePointRange> ranges_;
};

// The value of a hexadecimal digit; nullopt for any other character.
std::optional<std::uint32_t> hex_digit(char c);

// One to four byte ranges: every choice of a byte from each is the encoding of one scalar value.
struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
};
using ByteRanges = std::vector<ByteRange>;

// The encodings of a set as few such sequences.
std::vector<ByteRanges> utf8_ranges(const CodePointSet& set);

void append_utf8(std::string& out, std::uint32_t point);

// Reads the character at `at` and moves past it; false when the bytes there are not UTF-8.
bool next_code_point(std::string_view text, std::size_t& at, std::uint32_t& point);

}  // namespace braid::grammar
