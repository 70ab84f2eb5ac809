// Splits a template into text and the tokens of its tags, with Jinja's whitespace control
// (trim_blocks and lstrip_blocks on, as chat templates are written for).
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    kText,
    kOpenPrint,
    kClosePrint,
    kOpenBlock,
    kCloseBlock,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  int line = 1;
  std::string text;  // the text, name or operator; a string's value after its escapes; a number as written
};

// Ends with a kEnd token. kInvalidArgument with the line otherwise.
Result<std::vector<Token>> tokenize(std::string_view source);

// "line N of the chat template: what"
Error template_error(int line, std::string_view what);

}  // namespace braid::text::jinja
