#include "text/tokenizer/pipeline/digit_groups.h"

#include "text/tokenizer/unicode.h"

#include <utility>

namespace braid::text {
namespace {

constexpr std::pair<std::string_view, DigitGroups> kExpressions[] = {{R"(\d{1,3}(?=(?:\d{3})*\b))", DigitGroups::kBeforeWordEnd},
                                                                     {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))", DigitGroups::kNumbers},
                                                                     {R"((?=(\d{3})+(?!\d)))", DigitGroups::kPlaces}};

bool is_digit_of(DigitGroups groups, char32_t code) {
  return groups == DigitGroups::kNumbers ? char_class(code) == CharClass::kNumber : is_decimal_digit(code);
}

// What Oniguruma's \w takes for part of a word.
bool is_word_of_regex(char32_t code) {
  const bool fraction_or_power = code == 0xb2 || code == 0xb3 || code == 0xb9 || (code >= 0xbc && code <= 0xbe);
  return fraction_or_power || (is_word_character(code) && code != 0x200c && code != 0x200d);
}

}  // namespace

std::optional<DigitGroups> digit_groups_of(std::string_view expression) {
  for (const auto& [known, groups] : kExpressions)
    if (known == expression) return groups;
  return std::nullopt;
}

void find_digit_groups(DigitGroups groups, std::string_view text, std::vector<TextSpan>& spans) {
  std::size_t begin = 0;            // of what is in no span yet
  std::vector<std::size_t> places;  // where the digits of a run begin, and its end
  for (std::size_t at = 0; at < text.size();) {
    places.clear();
    char32_t next = 0;
    std::size_t size = 0;
    for (; at < text.size(); at += size) {
      const Utf8Char c = decode_utf8(text, at);
      next = c.code;
      size = c.size;
      if (!is_digit_of(groups, c.code)) break;
      places.push_back(at);
    }
    const bool at_end = at == text.size();
    places.push_back(at);
    at += at_end ? 0 : size;
    const std::size_t count = places.size() - 1;
    if (groups == DigitGroups::kBeforeWordEnd && !at_end && is_word_of_regex(next)) continue;
    for (std::size_t i = 0, end = 0; i < count; i = end) {
      end = i + ((count - i) % 3 == 0 ? 3 : (count - i) % 3);
      const bool is_place = groups == DigitGroups::kPlaces;
      if (is_place && (count - i) % 3 != 0) continue;
      if (begin < places[i]) spans.push_back({begin, places[i], false});
      begin = is_place ? places[i] : places[end];
      spans.push_back({places[i], begin, true});
    }
  }
  if (begin < text.size()) spans.push_back({begin, text.size(), false});
}

}  // namespace braid::text
