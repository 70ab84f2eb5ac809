// Command lines as `braid` reads them.
#pragma once

#include "app/command_line.h"

#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

namespace braid::app {

inline Command parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv = {"braid"};
  argv.insert(argv.end(), arguments);
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// The text of a mistake.
inline std::string mistake(std::initializer_list<const char*> arguments) {
  const Command command = parse(arguments);
  const auto* farewell = std::get_if<Farewell>(&command);
  if (farewell == nullptr) return "accepted";
  EXPECT_EQ(farewell->exit_code, 2);
  return farewell->text;
}

}  // namespace braid::app
