// Classes of characters that answers are read by.
#pragma once

#include <string_view>

namespace braid::net {

inline constexpr std::string_view kSpace = " \n\r\t";

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace braid::net
