// Sizes and durations as people write them on a command line.
#pragma once

#include "braid/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::app {

// "4GiB", "512M", "1.5G", "65536". K, M, G, T and KiB ... TiB count in 1024s; KB, MB, GB and TB in 1000s; no unit means bytes.
Result<std::uint64_t> parse_size(std::string_view text);

// "500ms", "30s", "2m", "1h", "7d"; no unit means seconds.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Three significant digits, in 1024s: "30.1 MiB".
std::string format_size(std::uint64_t bytes);

}  // namespace braid::app
