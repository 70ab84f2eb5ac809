// Digits in groups of three counted from the right, which as a regular expression takes time quadratic in their number.
#pragma once

#include "text/tokenizer/pipeline/piece_list.h"

#include <optional>
#include <string_view>
#include <vector>

namespace braid::text {

enum class DigitGroups {
  kBeforeWordEnd,  // \d{1,3}(?=(?:\d{3})*\b)
  kNumbers,        // \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))
  kPlaces,         // (?=(\d{3})+(?!\d)), whose matches are empty
};

// Nothing when the expression is none of these.
std::optional<DigitGroups> digit_groups_of(std::string_view expression);

// Appends the spans that the expression finds in `text`, which is valid UTF-8.
void find_digit_groups(DigitGroups groups, std::string_view text, std::vector<TextSpan>& spans);

}  // namespace braid::text
