#include "app/exhausted.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <unistd.h>

namespace braid::app {
namespace {

std::terminate_handler usual_end = nullptr;

void explain() {
  if (const std::exception_ptr failure = std::current_exception()) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::bad_alloc&) {
      end_exhausted();
    } catch (...) {
      usual_end();
    }
  }
  usual_end();
}

}  // namespace

void end_when_exhausted() { usual_end = std::set_terminate(explain); }

void end_exhausted() noexcept {
  constexpr std::string_view kWhy =
      "braid: the system gives no more memory, and what could not be finished without it cannot be undone: ending. Raise ulimit -v or -d, "
      "or "
      "lower --kv-memory\n";
  static_cast<void>(::write(STDERR_FILENO, kWhy.data(), kWhy.size()) < 0);
  std::_Exit(kExhaustedExitCode);
}

}  // namespace braid::app
