// Tokenizes for test/e2e/tokenizers_test.mjs, which compares it with the tokenizers library. Reads lines of JSON: a string is the text of a
// tokenizer.json from here on, an array holds texts. Answers a tokenizer with "ok" or its error, and each text with its ids, a tab, and
// their decoded text as a JSON string.
#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <iostream>
#include <optional>
#include <simdjson.h>
#include <string>

namespace {

using namespace braid;

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

void answer(const text::Tokenizer& tokenizer, std::string_view words) {
  const auto tokens = tokenizer.encode(words, {.add_special = true, .parse_special = true});
  std::string line;
  for (const TokenId token : tokens) line += fmt::format("{}{}", line.empty() ? "" : " ", token);
  std::cout << line << '\t' << json_string(tokenizer.decode(tokens)) << '\n';
}

}  // namespace

int main() {
  std::optional<text::Tokenizer> tokenizer;
  simdjson::dom::parser parser;
  for (std::string line; std::getline(std::cin, line);) {
    const simdjson::dom::element value = parser.parse(line);
    if (value.is_string()) {
      auto read = text::Tokenizer::from_json({std::string_view(value), {}, {}});
      std::cout << (read ? "ok" : read.error().message) << std::endl;
      tokenizer.reset();
      if (read) tokenizer.emplace(std::move(*read));
      continue;
    }
    for (const simdjson::dom::element words : value.get_array()) answer(*tokenizer, std::string_view(words));
    std::cout << std::flush;
  }
  return 0;
}
