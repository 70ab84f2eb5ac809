// JSON out: appended to a buffer that the caller reuses.
#pragma once

#include <string>
#include <string_view>

namespace braid::net::json {

// `text` is UTF-8. Appends it with quotes and escapes.
void append_string(std::string& out, std::string_view text);
std::string quoted(std::string_view text);

// The same for bytes that may not be UTF-8: what is none becomes U+FFFD, one for each maximal subpart of a character, as in answers.
void append_lossy_string(std::string& out, std::string_view bytes);
// The same as a member behind others of an object: ,"name":"text". The name is one that needs no escape.
void append_member(std::string& out, std::string_view name, std::string_view bytes);

// The shortest form that reads back as the same float; JSON has no infinities, so those become ±9999 as OpenAI writes them.
void append_float(std::string& out, float value);

// The length of the UTF-8 character that `text` begins with, or 0 when it does not begin with a whole one.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view bytes);
// Of text that is UTF-8.
std::size_t count_characters(std::string_view text);

}  // namespace braid::net::json
