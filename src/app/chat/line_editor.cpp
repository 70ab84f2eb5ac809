#include "app/chat/line_editor.h"

#include <cstdio>
#include <cstdlib>
#include <editline/readline.h>
#include <iostream>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

constexpr int kMostLines = 1000;

}  // namespace

LineEditor::LineEditor(std::string history)
    : terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1), history_(std::move(history)) {
  if (!terminal_) return;
  using_history();
  stifle_history(kMostLines);
  if (!history_.empty()) read_history(history_.c_str());
}

LineEditor::~LineEditor() {
  if (terminal_ && !history_.empty()) write_history(history_.c_str());
}

std::optional<std::string> LineEditor::line(const char* prompt) {
  std::fflush(stdout);
  if (!terminal_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  char* typed = readline(prompt);
  if (typed == nullptr) return std::nullopt;
  std::string line = typed;
  std::free(typed);
  return line;
}

void LineEditor::remember(const std::string& text) {
  if (!terminal_ || text.empty()) return;
  std::string line = text;
  for (char& c : line)
    if (c == '\n') c = ' ';
  add_history(line.c_str());
}

}  // namespace braid::app
