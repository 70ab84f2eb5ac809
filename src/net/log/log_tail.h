// The last lines of the log, for administrators who look from afar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Any thread. The thread that writes the log puts lines in, and the loop takes some out when it is asked to: neither waits for more than
// the copying of some lines.
class LogTail {
 public:
  static constexpr std::size_t kMostLines = 1000;
  static constexpr std::size_t kMostBytes = 1024;  // of a line; what is longer is cut

  struct Excerpt {
    std::uint64_t first = 1;         // the number of the first of `lines`; all lines since the start are counted, from 1
    std::vector<std::string> lines;  // without their ends; perhaps cut within a character
  };

  void push(std::string_view line);

  // The last `most` of the lines that came after number `after` and are still there.
  Excerpt after(std::uint64_t after, std::size_t most) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  std::uint64_t count_ = 0;  // since the start
};

}  // namespace braid::net
