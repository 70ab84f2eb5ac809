// Splitting and replacing as Python does it, shared by methods and filters. Views point into `text`; a `limit` below
// zero is none.
#pragma once

#include "text/jinja/runtime.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace braid::text::jinja {

std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t limit);
std::vector<std::string_view> split_spaces_right(std::string_view text, std::int64_t limit);
std::vector<std::string_view> split_by(std::string_view text, std::string_view separator, std::int64_t limit);
std::vector<std::string_view> split_by_right(std::string_view text, std::string_view separator, std::int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

Object text_list(Runtime& runtime, const std::vector<std::string_view>& parts, Sequence::Kind kind = Sequence::Kind::kList);
Object replace_text(Runtime& runtime, std::string_view text, std::string_view old, std::string_view with, std::int64_t limit);

// Whether some character is `wanted` and none `unwanted`.
bool has_only_case(std::string_view text, bool (*wanted)(std::int32_t), bool (*unwanted)(std::int32_t));

}  // namespace braid::text::jinja
