// Turns argc and argv into one command's options, or into text for the terminal.
#pragma once

#include "app/bench/bench.h"
#include "app/options.h"

#include <string>
#include <variant>

namespace braid::app {

// --help, --version, or a mistake: print `text` and leave with `exit_code` (0, or 2 for a mistake).
struct Farewell {
  int exit_code = 0;
  std::string text;
};

using Command = std::variant<ServeOptions, ConfigOptions, RunOptions, PlanOptions, ModelReportOptions, bench::BenchOptions,
                             CacheExportOptions, CacheImportOptions, ConvertCommandOptions, QuantizeCommandOptions, SplitCommandOptions,
                             MergeCommandOptions, ModelCommandOptions, Farewell>;

Command parse_command_line(int argc, const char* const* argv);

}  // namespace braid::app
