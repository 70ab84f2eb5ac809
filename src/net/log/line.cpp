#include "net/log/line.h"

#include "braid/printable.h"
#include "net/json/write.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace braid::net {
namespace {

bool is_plain(char c) { return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\'; }

// As it is where nobody can take it for more than one value, else in quotes.
void append_value(std::string& out, std::string_view value) {
  if (!value.empty() && std::all_of(value.begin(), value.end(), is_plain)) {
    out += value;
    return;
  }
  std::string escaped;
  for (const char c : value) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  out += '"';
  out += printable(escaped);
  out += '"';
}

}  // namespace

LogLine::LogLine(LogFormat format, std::string_view message) : format_(format) {
  if (format_ == LogFormat::kText) {
    text_ = printable(message);
  } else {
    text_ = R"("message":)";
    json::append_lossy_string(text_, message);
  }
}

void LogLine::begin(std::string_view name) {
  if (format_ == LogFormat::kText) {
    fmt::format_to(std::back_inserter(text_), " {}=", name);
  } else {
    fmt::format_to(std::back_inserter(text_), R"(,"{}":)", name);
  }
}

LogLine& LogLine::add(std::string_view name, std::string_view value) {
  begin(name);
  if (format_ == LogFormat::kText) {
    append_value(text_, value);
  } else {
    json::append_lossy_string(text_, value);
  }
  return *this;
}

LogLine& LogLine::add(std::string_view name, std::int64_t value) {
  begin(name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

LogLine& LogLine::add(std::string_view name, double value) {
  begin(name);
  fmt::format_to(std::back_inserter(text_), "{:.3f}", value);
  return *this;
}

}  // namespace braid::net
