#include "files/python_json.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace braid::files {
namespace {

template <class Number>
bool is_out_of_range(std::string_view digits) {
  Number ignored = 0;
  return std::from_chars(digits.data(), digits.data() + digits.size(), ignored).ec == std::errc::result_out_of_range;
}

// What stands for a word outside of strings, where it is not the word itself.
std::string replacement(std::string_view word) {
  if (word == "Infinity") return "1e308";
  if (word == "-Infinity") return "-1e308";
  if (word.find_first_not_of("-0123456789") != std::string_view::npos || !is_out_of_range<std::int64_t>(word)) return {};
  return word.front() == '-' || is_out_of_range<std::uint64_t>(word) ? std::string(word) + "e0" : std::string();
}

// Behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (at = text.find_first_of("\"\\", at + 1); at < text.size() && text[at] == '\\'; at = text.find_first_of("\"\\", at + 2)) {
  }
  return at < text.size() ? at + 1 : text.size();
}

}  // namespace

std::string plain_json(std::string_view text) {
  constexpr std::string_view kBegins = "\"-0123456789I";  // strings, and words that may have to be replaced
  constexpr std::string_view kWord = "+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string out;
  std::size_t kept = 0;
  for (std::size_t at = text.find_first_of(kBegins); at < text.size(); at = text.find_first_of(kBegins, at)) {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    const std::size_t end = std::min(text.find_first_not_of(kWord, at), text.size());
    if (const std::string other = replacement(text.substr(at, end - at)); !other.empty()) {
      out.append(text.substr(kept, at - kept)).append(other);
      kept = end;
    }
    at = end;
  }
  return out.append(text.substr(kept));
}

}  // namespace braid::files
