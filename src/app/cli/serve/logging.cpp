#include "app/cli/serve/groups.h"

namespace braid::app {

void add_log_options(CLI::App& app, LogOptions& options) {
  app.add_option("--log-level", options.level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  app.add_option_function<std::string>(
         "--log-format",
         [&options](const std::string& format) { options.format = format == "json" ? net::LogFormat::kJson : net::LogFormat::kText; },
         "text, or json with an object a line")
      ->default_str("text")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--access-log", options.access, "A line for every request, at level info");
}

std::string log_fault(const LogOptions& options) {
  const bool silent = options.level == "warning" || options.level == "error" || options.level == "off";
  return options.access && silent ? "--access-log writes at level info, which --log-level leaves out" : "";
}

}  // namespace braid::app
