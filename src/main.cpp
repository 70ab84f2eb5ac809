#include "app/command_line.h"
#include "app/commands/commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <variant>

int main(int argc, char** argv) {
  try {
    return std::visit([](const auto& command) { return braid::app::run_command(command); },
                      braid::app::parse_command_line(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "braid: internal error: {}\n", e.what());
    return EXIT_FAILURE;
  }
}
