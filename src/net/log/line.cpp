#include <fmt/format.h>
#include <net/json/write.h>
#include <net/log/line.h>

#include <algorithm>
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
  append_printable(out, escaped);
  out += '"';
}

}  // namespace

void append_printable(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // as UTF-8
    if (byte < 0x20 || byte == 0x7F || is_c1) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", is_c1 ? next : byte);
      if (is_c1) ++i;
    } else {
      out += text[i];
    }
  }
}

LogLine::LogLine(LogFormat format, std::string_view message) : format_(format) {
  if (format_ == LogFormat::kText) {
    append_printable(text_, message);
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
