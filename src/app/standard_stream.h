// Standard output and standard error of a server: whoever reads them may be gone, or have stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace braid::app {

inline constexpr std::chrono::milliseconds kStreamPatience{1000};

// Returns how many of `bytes` the stream has taken: fewer when it fails, or takes nothing for `patience`. Any thread.
std::size_t write_patiently(int file, std::string_view bytes, std::chrono::milliseconds patience = kStreamPatience);

// "braid: SENTENCE" and a line's end to standard error, or nothing.
void complain(std::string_view sentence);

}  // namespace braid::app
