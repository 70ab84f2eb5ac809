#include "net/generation/stop_window.h"

#include <algorithm>

namespace braid::net {
namespace {

std::vector<std::uint32_t> borders(const std::string& text) {
  std::vector<std::uint32_t> border(text.size() + 1, 0);
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = border[length];
    if (text[i] == text[length]) ++length;
    border[i + 1] = length;
  }
  return border;
}

}  // namespace

StopWindow::StopWindow(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) patterns_.push_back({stop, borders(stop), 0});
}

bool StopWindow::feed(std::string_view piece, std::string& out) {
  if (patterns_.empty()) {
    out += piece;
    return false;
  }
  std::size_t keep = 0;  // the longest prefix of a stop string that the text ends with
  for (const char c : piece) {
    held_ += c;
    keep = 0;
    const std::string* found = nullptr;  // the longest stop string that ends here
    for (Pattern& pattern : patterns_) {
      while (pattern.matched > 0 && pattern.text[pattern.matched] != c) pattern.matched = pattern.fallback[pattern.matched];
      if (pattern.text[pattern.matched] == c) ++pattern.matched;
      keep = std::max<std::size_t>(keep, pattern.matched);
      const bool complete = pattern.matched == pattern.text.size();
      if (complete && (found == nullptr || pattern.text.size() > found->size())) found = &pattern.text;
    }
    if (found == nullptr) continue;
    found_ = *found;
    out.append(held_, 0, held_.size() - found_.size());
    held_.clear();
    return true;
  }
  if (!piece.empty()) {
    out.append(held_, 0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
  }
  return false;
}

void StopWindow::flush(std::string& out) {
  out += held_;
  held_.clear();
  for (Pattern& pattern : patterns_) pattern.matched = 0;
}

}  // namespace braid::net
