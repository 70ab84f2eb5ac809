// One line of the log: a message and named values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::net {

enum class LogFormat { kText, kJson };

// Appends `text` with its control characters (C0, DEL, C1) as \xNN, so that it stays in its line and steers no terminal.
void append_printable(std::string& out, std::string_view text);

// Without time and level. Whatever the values hold, it is one line, and no value can be taken for another.
class LogLine {
 public:
  LogLine(LogFormat format, std::string_view message);

  LogLine& add(std::string_view name, std::string_view value);
  LogLine& add(std::string_view name, std::int64_t value);
  LogLine& add(std::string_view name, double value);  // to thousandths

  // kText: message name=value name="value with spaces". kJson: the members of an object, without its braces.
  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name);

  LogFormat format_;
  std::string text_;
};

}  // namespace braid::net
