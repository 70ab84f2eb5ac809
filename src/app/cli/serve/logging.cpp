#include <app/cli/serve/groups.h>

namespace braid::app {

void add_log_options(CLI::App& app, LogOptions& options) {
  app.add_option("--log-level", options.level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
}

}  // namespace braid::app
