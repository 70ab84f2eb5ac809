// Lines that somebody types, with history; from a pipe as they are.
#pragma once

#include <optional>
#include <string>

namespace braid::app {

// One at a time.
class LineEditor {
 public:
  // `history`: a file that lines of before are read from and written to; empty: none.
  explicit LineEditor(std::string history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  bool is_terminal() const { return terminal_; }
  std::optional<std::string> line(const char* prompt);  // nullopt: the end
  void remember(const std::string& text);               // something whole, of one line or several

 private:
  const bool terminal_;
  std::string history_;
};

}  // namespace braid::app
