// What becomes of an exception that ends a coroutine of its own.
#pragma once

#include <exception>
#include <spdlog/spdlog.h>

namespace braid::net {

// For co_spawn(): such an exception is a bug or exhaustion, which costs what the coroutine was about and nothing else.
// `what` outlives it.
constexpr auto log_failure(const char* what) {
  return [what](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      spdlog::error("{} failed: {}", what, error.what());
    }
  };
}

}  // namespace braid::net
