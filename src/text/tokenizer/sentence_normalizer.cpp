#include "text/tokenizer/sentence_normalizer.h"

#include "text/tokenizer/unicode.h"

#include <utility>

namespace braid::text {
namespace {

// Without spaces at the ends and with one where several follow each other.
std::string without_extra_spaces(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

Result<SentenceNormalizer> SentenceNormalizer::make(const SentenceRules& rules) {
  std::optional<Charsmap> map;
  if (!rules.charsmap.empty()) {
    map = Charsmap::read(rules.charsmap);
    if (!map) return Error{ErrorCode::kBadFile, "the tokenizer's precompiled charsmap is damaged", {}};
  }
  return SentenceNormalizer(rules, std::move(map));
}

SentenceNormalizer::SentenceNormalizer(const SentenceRules& rules, std::optional<Charsmap> map)
    : map_(std::move(map)), add_space_(rules.add_space_prefix), remove_extra_(rules.remove_extra_whitespaces),
      space_is_suffix_(rules.space_is_suffix) {}

// The longest key of the rules at each place; other characters stay.
std::string SentenceNormalizer::mapped(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Charsmap::Match match = map_->longest(text.substr(at));
    const std::size_t size = match.size > 0 ? match.size : decode_utf8(text, at).size;
    out += match.size > 0 ? match.by : text.substr(at, size);
    at += size;
  }
  return out;
}

std::string SentenceNormalizer::apply(std::string_view text, bool at_start) const {
  std::string plain;
  if (map_) text = plain = mapped(text);
  std::string trimmed;
  if (remove_extra_) text = trimmed = without_extra_spaces(text);
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  const bool add = at_start && add_space_ && (!text.empty() || !remove_extra_);
  if (add && !space_is_suffix_) out += kEscapedSpace;
  for (const char c : text) {
    if (c == ' ') {
      out += kEscapedSpace;
    } else {
      out += c;
    }
  }
  if (add && space_is_suffix_) out += kEscapedSpace;
  return out;
}

}  // namespace braid::text
