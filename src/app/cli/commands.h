// The commands with their options: add_* declares one, which reads into `options` when it is parsed; *_fault says what of the values
// read cannot be together, or is empty.
#pragma once

#include "app/bench/bench.h"
#include "app/options.h"
#include "braid/result.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace braid::app {

CLI::App* add_serve(CLI::App& app, ServeOptions& options, std::string& config);
std::string value_fault(const CLI::App& serve);
std::string serve_fault(const ServeOptions& options);

CLI::App* add_config(CLI::App& app, ConfigOptions& options);
// What the command says: of a file that is wrong, why.
Result<std::string> config_text(const ConfigOptions& options);

CLI::App* add_run(CLI::App& app, RunOptions& options);
void settle_run_arguments(RunOptions& options);  // `braid run "Tell me a story"` means the embedded model

CLI::App* add_plan(CLI::App& app, PlanOptions& options);
CLI::App* add_info(CLI::App& app, ModelReportOptions& options);

CLI::App* add_cache(CLI::App& app, CacheExportOptions& to, CacheImportOptions& from);
std::string export_fault(const CacheExportOptions& options);

CLI::App* add_convert(CLI::App& app, ConvertCommandOptions& options);
CLI::App* add_quantize(CLI::App& app, QuantizeCommandOptions& options);
CLI::App* add_split(CLI::App& app, SplitCommandOptions& options);
CLI::App* add_merge(CLI::App& app, MergeCommandOptions& options);

// pull, push, list, show, ps, stop, rm, cp, create, status and key.
std::vector<CLI::App*> add_model_commands(CLI::App& app, ModelCommandOptions& options);

CLI::App* add_completion(CLI::App& app, std::string& shell);
std::string completion_script(const CLI::App& app, const std::string& shell);  // of all commands that have been added

CLI::App* add_bench(CLI::App& app, bench::BenchOptions& options);

}  // namespace braid::app
