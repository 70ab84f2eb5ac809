#include "grammar/code_points.h"

#include <algorithm>
#include <array>

namespace braid::grammar {
namespace {

constexpr std::uint32_t kFirstSurrogate = 0xD800;
constexpr std::uint32_t kLastSurrogate = 0xDFFF;
constexpr std::array<std::uint32_t, 4> kLastOfLength = {0x7F, 0x7FF, 0xFFFF, kMaxCodePoint};

std::uint8_t byte_at(std::uint32_t point, std::size_t length, std::size_t index) {
  static constexpr std::array<std::uint32_t, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
  if (length == 1) return static_cast<std::uint8_t>(point);
  const auto shift = static_cast<unsigned>(6 * (length - 1 - index));
  const std::uint32_t bits = point >> shift;
  return static_cast<std::uint8_t>(index == 0 ? kLead[length] | bits : 0x80U | (bits & 0x3FU));
}

// [first, last] of one encoded length, split until the continuation bytes below the first byte that differs span all of 80–BF.
void split_range(std::uint32_t first, std::uint32_t last, std::size_t length, std::vector<ByteRanges>& out) {
  for (std::size_t tail = 1; tail < length; ++tail) {
    const std::uint32_t mask = (1U << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      split_range(first, first | mask, length, out);
      return split_range((first | mask) + 1, last, length, out);
    }
    if ((last & mask) != mask) {
      split_range(first, (last & ~mask) - 1, length, out);
      return split_range(last & ~mask, last, length, out);
    }
  }
  ByteRanges ranges;
  for (std::size_t i = 0; i < length; ++i) ranges.push_back({byte_at(first, length, i), byte_at(last, length, i)});
  out.push_back(std::move(ranges));
}

}  // namespace

std::optional<std::uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::vector<CodePointRange> cut;
  for (const CodePointRange range : ranges) {
    const std::uint32_t last = std::min(range.last, kMaxCodePoint);
    if (range.first > last) continue;
    if (range.first < kFirstSurrogate) cut.push_back({range.first, std::min(last, kFirstSurrogate - 1)});
    if (last > kLastSurrogate) cut.push_back({std::max(range.first, kLastSurrogate + 1), last});
  }
  std::sort(cut.begin(), cut.end(), [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  for (const CodePointRange range : cut) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

CodePointSet CodePointSet::of(std::string_view ascii) {
  std::vector<CodePointRange> ranges;
  for (const char c : ascii) ranges.push_back({static_cast<unsigned char>(c), static_cast<unsigned char>(c)});
  return CodePointSet(std::move(ranges));
}

bool CodePointSet::contains(std::uint32_t point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const CodePointRange& r) { return r.first <= point && point <= r.last; });
}

CodePointSet CodePointSet::complement() const {
  std::vector<CodePointRange> gaps;
  std::uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) gaps.push_back({next, kMaxCodePoint});
  return CodePointSet(std::move(gaps));
}

CodePointSet CodePointSet::united(const CodePointSet& other) const {
  std::vector<CodePointRange> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(ranges));
}

CodePointSet CodePointSet::without(const CodePointSet& other) const { return complement().united(other).complement(); }

std::vector<ByteRanges> utf8_ranges(const CodePointSet& set) {
  std::vector<ByteRanges> out;
  for (const CodePointRange& range : set.ranges()) {
    std::uint32_t first = range.first;
    for (std::size_t length = 1; length <= 4 && first <= range.last; ++length) {
      if (first > kLastOfLength[length - 1]) continue;
      const std::uint32_t last = std::min(range.last, kLastOfLength[length - 1]);
      split_range(first, last, length, out);
      first = last + 1;
    }
  }
  return out;
}

void append_utf8(std::string& out, std::uint32_t point) {
  std::size_t length = 1;
  while (point > kLastOfLength[length - 1]) ++length;
  for (std::size_t i = 0; i < length; ++i) out += static_cast<char>(byte_at(point, length, i));
}

bool next_code_point(std::string_view text, std::size_t& at, std::uint32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(at);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size() - at) return false;
  point = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return false;
    point = (point << 6) | (byte(at + i) & 0x3FU);
  }
  const bool shortest = length == 1 || point > kLastOfLength[length - 2];
  if (!shortest || point > kMaxCodePoint || (point >= kFirstSurrogate && point <= kLastSurrogate)) return false;
  at += length;
  return true;
}

}  // namespace braid::grammar
