#include "app/command_line.h"
#include "app/commands/commands.h"
#include "app/exhausted.h"
#include "app/failure.h"
#include "app/standard_stream.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <new>
#include <string_view>
#include <unistd.h>
#include <variant>

namespace {

// A standard stream that is closed would be the next file or connection that is opened, and get what is printed.
void open_standard_streams() {
  int file = 0;
  do file = ::open("/dev/null", O_RDWR);
  while (file >= 0 && file <= STDERR_FILENO);
  if (file >= 0) ::close(file);
}

// A model file is mapped: one that is cut short while it is read, or a disk that fails, ends the process by this signal.
void explain_bus_errors() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    constexpr std::string_view kWhy = "braid: a file that is being read has become shorter, or its disk has failed (SIGBUS)\n";
    if (::write(STDERR_FILENO, kWhy.data(), kWhy.size()) < 0) return;
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGBUS, &action, nullptr);
}

// A server goes on where nobody takes what it prints; what other commands print is what they are for.
int run(const braid::app::Command& command) {
  const int code = std::visit([](const auto& options) { return braid::app::run_command(options); }, command);
  if (code != EXIT_SUCCESS || std::holds_alternative<braid::app::ServeOptions>(command)) return code;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return EXIT_SUCCESS;
  braid::app::complain("standard output could not be written");
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  explain_bus_errors();
  braid::app::end_when_exhausted();
  try {
    return run(braid::app::parse_command_line(argc, argv));
  } catch (const std::bad_alloc&) {
    braid::app::end_exhausted();
  } catch (const std::exception& e) {
    braid::app::complain(braid::app::explain_failure(e));
    return EXIT_FAILURE;
  }
}
