#include "net/json/write_value.h"

#include "net/json/write.h"

#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace braid::net::json {
namespace {

void append(std::string& out, std::nullptr_t) { out += "null"; }
void append(std::string& out, bool value) { out += value ? "true" : "false"; }
void append(std::string& out, std::int64_t value) { fmt::format_to(std::back_inserter(out), "{}", value); }
void append(std::string& out, const LongInteger& value) { out += value.text; }
void append(std::string& out, const std::string& text) { append_lossy_string(out, text); }

void append(std::string& out, double value) {
  if (!std::isfinite(value)) return append(out, nullptr);  // JSON has no word for it
  fmt::format_to(std::back_inserter(out), "{}", value);
}

void append(std::string& out, const ValueList& list) {
  std::string_view separator = "";
  out += '[';
  for (const Value& item : list) {
    out += separator;
    separator = ",";
    append_value(out, item);
  }
  out += ']';
}

void append(std::string& out, const ValueDict& dict) {
  std::string_view separator = "";
  out += '{';
  for (const auto& [name, value] : dict) {
    out += separator;
    separator = ",";
    append_lossy_string(out, name);
    out += ':';
    append_value(out, value);
  }
  out += '}';
}

}  // namespace

void append_value(std::string& out, const Value& value) {
  std::visit([&out](const auto& kind) { append(out, kind); }, value.storage());
}

}  // namespace braid::net::json
