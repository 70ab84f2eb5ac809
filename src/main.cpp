#include "app/command_line.h"
#include "app/commands/commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <variant>

int main(int argc, char** argv) {
  // mimalloc's operator new, built from C, ends the process when memory runs out and there is no handler.
  std::set_new_handler([] { throw std::bad_alloc(); });
  try {
    return std::visit([](const auto& command) { return braid::app::run_command(command); },
                      braid::app::parse_command_line(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "braid: internal error: {}\n", e.what());
    return EXIT_FAILURE;
  }
}
