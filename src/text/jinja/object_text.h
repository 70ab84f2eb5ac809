// Values as text: Python's str() and repr(), and json.dumps().
#pragma once

#include "text/jinja/object.h"

#include <string>
#include <string_view>

namespace braid::text::jinja {

// Both are false when `out` would grow beyond `limit` bytes (checked once a value) or values nest too deeply.
bool append_text(std::string& out, const Object& value, std::size_t limit);  // str()
bool append_repr(std::string& out, const Object& value, std::size_t limit);  // repr()
void append_float(std::string& out, double value);                           // the shortest digits that read back the same
// Reads all of `digits`; beyond the range of a float it is infinite, or 0 where it is too small. False when it is no number.
bool read_float(std::string_view digits, double& value);

struct JsonStyle {
  bool ascii = false;   // escape everything beyond ASCII
  bool pretty = false;  // one member a line
  bool sort_keys = false;
  std::string indent;  // of each level, when pretty
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// False when the value has no JSON form, or as above.
bool append_json(std::string& out, const Object& value, const JsonStyle& style, std::size_t limit);

}  // namespace braid::text::jinja
