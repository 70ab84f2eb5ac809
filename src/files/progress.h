// How long operations at start-up report. Called from the thread that started the operation.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace braid::files {

// `what` is one or two words ("weights", "KV cache"); done and total are bytes.
using Progress = std::function<void(std::string_view what, std::uint64_t done, std::uint64_t total)>;

}  // namespace braid::files
