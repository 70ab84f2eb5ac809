// The commands of the command line. Each returns the process's exit code.
#pragma once

#include "app/command_line.h"
#include "app/options.h"
#include "braid/result.h"

namespace braid::app {

int run_command(const ServeOptions& options);
int run_command(const ConfigOptions& options);
int run_command(const RunOptions& options);
int run_command(const PlanOptions& options);
int run_command(const ModelReportOptions& options);
int run_command(const bench::BenchOptions& options);
int run_command(const CacheExportOptions& options);
int run_command(const CacheImportOptions& options);
int run_command(const ConvertCommandOptions& options);
int run_command(const QuantizeCommandOptions& options);
int run_command(const SplitCommandOptions& options);
int run_command(const MergeCommandOptions& options);
int run_command(const ModelCommandOptions& options);
int run_command(const Farewell& farewell);

// Of the commands that manage models, besides those of report().
inline constexpr int kExitNoServer = 3;
inline constexpr int kExitNotFound = 4;
inline constexpr int kExitInterrupted = 130;

// Prints the error's sentence: 2 when the command line asked what cannot be, 1 otherwise.
int report(const Error& error);

}  // namespace braid::app
