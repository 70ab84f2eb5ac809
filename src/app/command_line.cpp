#include "app/command_line.h"

#include "app/cli/commands.h"
#include "app/cli/launch.h"
#include "app/cli/serve/groups.h"
#include "app/config_file.h"
#include "app/version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

// The command that was named, with the commands above it: "braid bench serve".
std::pair<const CLI::App*, std::string> named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string path = "braid";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return {command, path};
}

Farewell mistake(const CLI::App& app, const std::string& message) {
  const std::string command = named_command(app).second;
  return {2, fmt::format("{}: {}\nTry '{} --help'.\n", command, message, command)};
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  if (const auto meant = launched({argv, argv + argc})) {
    std::vector<const char*> arguments;
    for (const std::string& argument : *meant) arguments.push_back(argument.c_str());
    return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  }
  CLI::App app("braid: an LLM inference server for CPUs", "braid");
  app.set_version_flag("--version", std::string("braid ") + kVersion);
  app.footer("'braid COMMAND --help' shows a command's options. 'braid launch --ranks N serve ...' is 'braid serve --ranks N ...'.");

  ServeOptions serve_options;
  RunOptions run_options;
  PlanOptions plan_options;
  ModelReportOptions info_options;
  std::string config;
  const CLI::App* serve = add_serve(app, serve_options, config);
  ConfigOptions config_options;
  const CLI::App* configuration = add_config(app, config_options);
  const CLI::App* run = add_run(app, run_options);
  const CLI::App* plan = add_plan(app, plan_options);
  const CLI::App* info = add_info(app, info_options);
  bench::BenchOptions bench_options;
  const CLI::App* bench = add_bench(app, bench_options);
  CacheExportOptions export_options;
  CacheImportOptions import_options;
  const CLI::App* cache = add_cache(app, export_options, import_options);
  ConvertCommandOptions convert_options;
  const CLI::App* convert = add_convert(app, convert_options);
  QuantizeCommandOptions quantize_options;
  const CLI::App* quantize = add_quantize(app, quantize_options);
  SplitCommandOptions split_options;
  const CLI::App* split = add_split(app, split_options);
  MergeCommandOptions merge_options;
  const CLI::App* merge = add_merge(app, merge_options);
  ModelCommandOptions model_options;
  const std::vector<CLI::App*> model_commands = add_model_commands(app, model_options);
  std::string shell;
  const CLI::App* completion = add_completion(app, shell);

  try {
    app.parse(argc, argv);
    if (const std::string fault = value_fault(*serve); !fault.empty()) throw CLI::ValidationError(fault);
    if (*serve) {
      serve_options.doubts = configure(*app.get_subcommand("serve"), config).doubts;
      serve_options.arguments.assign(argv, argv + argc);
      serve_options.settings = settings_of(*app.get_subcommand("serve"));
    }
    if (const std::string fault = value_fault(*serve); !fault.empty()) throw CLI::ValidationError(fault);
  } catch (const CLI::CallForHelp&) {
    const auto [command, path] = named_command(app);
    return Farewell{0, command->help(command == &app ? "" : path.substr(0, path.rfind(' ')))};
  } catch (const CLI::CallForVersion&) {
    return Farewell{0, fmt::format("braid {}\n", kVersion)};
  } catch (const CLI::ParseError& e) {
    return mistake(app, e.what());
  }

  if (*serve) {
    settle_listen_options(*serve, serve_options);
    if (const std::string fault = serve_fault(serve_options); !fault.empty()) return mistake(app, fault);
    return serve_options;
  }
  if (*configuration) return config_options;
  if (*run) {
    settle_run_arguments(run_options);
    return run_options;
  }
  if (*plan) return plan_options;
  if (*info) return info_options;
  if (*bench) return bench_options;
  if (*convert) return convert_options;
  if (*quantize) return quantize_options;
  if (*split) return split_options;
  if (*merge) return merge_options;
  if (*cache && *cache->get_subcommand("import")) return import_options;
  if (*cache) {
    if (const std::string fault = export_fault(export_options); !fault.empty()) return mistake(app, fault);
    return export_options;
  }
  for (const CLI::App* command : model_commands)
    if (*command) return model_options;
  if (*completion) return Farewell{0, completion_script(app, shell)};
  return mistake(
      app,
      "a command is needed: serve, config, run, pull, list, show, ps, stop, rm, cp, create, push, status, key, plan, info, convert, "
      "quantize, split, merge, cache or bench");
}

}  // namespace braid::app
