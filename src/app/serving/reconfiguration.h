// A second reading of the command line, the environment and the file, while the server runs.
#pragma once

#include "app/options.h"
#include "braid/result.h"

#include <string>
#include <vector>

namespace braid::app {

struct Reconfiguration {
  ServeOptions options;              // as they are wanted now
  std::vector<std::string> taken;    // keys that differ and may change while the server runs
  std::vector<std::string> waiting;  // the other keys that differ: they wait for a start
};

// What differs from the options of `before`. An error changes nothing: a file with a mistake, or options that cannot be together.
Result<Reconfiguration> configure_again(const ServeOptions& before);

// Puts what was taken into `current`.
void take_options(ServeOptions& current, const Reconfiguration& again);

}  // namespace braid::app
