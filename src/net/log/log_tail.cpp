#include "net/log/log_tail.h"

#include <algorithm>
#include <utility>

namespace braid::net {

void LogTail::push(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  std::string text(line.substr(0, kMostBytes));
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(text));
  if (lines_.size() > kMostLines) lines_.pop_front();
  ++count_;
}

LogTail::Excerpt LogTail::after(std::uint64_t after, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t wanted = count_ - std::min(after, count_);
  const std::size_t size = std::min({static_cast<std::size_t>(wanted), lines_.size(), most});
  return {count_ - size + 1, {lines_.end() - static_cast<std::ptrdiff_t>(size), lines_.end()}};
}

}  // namespace braid::net
