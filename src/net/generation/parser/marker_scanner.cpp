#include "net/generation/parser/marker_scanner.h"

#include <algorithm>
#include <utility>

namespace braid::net {

MarkerScanner::MarkerScanner(std::vector<std::string> markers) : markers_(std::move(markers)) {
  for (const std::string& marker : markers_) first_[static_cast<unsigned char>(marker.front())] = true;
}

std::optional<std::size_t> MarkerScanner::feed(char c, std::string& out) {
  if (std::exchange(found_, false)) space_.clear();
  if (held_.empty() && !first_[static_cast<unsigned char>(c)]) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) out.append(space_);
    if (!space) space_.clear();
    at_marker_ = at_marker_ && space;
    (space ? space_ : out) += c;
    return std::nullopt;
  }
  held_ += c;
  if (!is_prefix(held_)) {
    std::string broken = std::exchange(held_, {});
    at_marker_ = false;
    out.append(space_);
    space_.clear();
    std::size_t begin = 1;
    while (begin + 1 < broken.size() && !is_prefix(std::string_view(broken).substr(begin))) ++begin;
    out.append(broken, 0, begin);
    if (begin == broken.size()) return std::nullopt;
    if (begin + 1 == broken.size()) return feed(c, out);  // it may be white space
    held_ = broken.substr(begin);
  }
  const auto whole = std::find(markers_.begin(), markers_.end(), held_);
  if (whole == markers_.end()) return std::nullopt;
  held_.clear();
  found_ = true;
  at_marker_ = true;
  return static_cast<std::size_t>(whole - markers_.begin());
}

void MarkerScanner::flush(std::string& out) {
  if (!std::exchange(found_, false)) out.append(space_);
  out.append(held_);
  space_.clear();
  held_.clear();
}

bool MarkerScanner::is_prefix(std::string_view text) const {
  return std::any_of(markers_.begin(), markers_.end(), [text](const std::string& marker) { return marker.starts_with(text); });
}

}  // namespace braid::net
