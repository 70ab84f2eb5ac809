// One line of the log: a message and named values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::net {

enum class LogFormat { kText, kJson };

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
