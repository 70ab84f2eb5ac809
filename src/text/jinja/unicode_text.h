// Text as Python sees it: a string of code points. Everything here takes and returns UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::text::jinja {

// The code point at `offset`, which moves behind it; a byte that starts no valid sequence counts as one code point, U+FFFD.
std::int32_t next_code_point(std::string_view text, std::size_t& offset);
void append_code_point(std::string& out, std::int32_t code_point);

std::size_t count_code_points(std::string_view text);
// Byte offset of the code point `index`; the end of the text when there are fewer.
std::size_t offset_of_code_point(std::string_view text, std::size_t index);

bool is_space(std::int32_t code_point);
bool is_printable(std::int32_t code_point);
bool is_upper(std::int32_t code_point);
bool is_lower(std::int32_t code_point);
bool is_letter(std::int32_t code_point);
bool is_digit(std::int32_t code_point);

// Removes from either side what is white space, or what `characters` lists.
enum class Side : std::uint8_t { kLeft, kRight, kBoth };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, Side side, std::string_view characters);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string casefold(std::string_view text);  // for comparison without case
std::string swap_case(std::string_view text);
std::string capitalize(std::string_view text);  // the first letter upper, the rest lower
std::string title(std::string_view text);       // so for each run of letters

}  // namespace braid::text::jinja
