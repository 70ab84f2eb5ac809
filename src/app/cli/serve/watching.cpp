#include "app/cli/serve/groups.h"
#include "app/option_types.h"

namespace braid::app {

void add_watch_options(CLI::App& app, WatchOptions& options) {
  add_duration(app, "--step-timeout", options.step_timeout, "A step that runs for so long makes /readyz answer 503; 0s: none does");
  add_duration(app, "--step-abort", options.step_abort, "A step that runs for so long ends the process with exit code 70; 0s: none does");
}

std::string watch_fault(const WatchOptions& options) {
  const bool ends_first = options.step_abort.count() > 0 && options.step_abort < options.step_timeout;
  return ends_first ? "--step-abort must not be shorter than --step-timeout" : "";
}

}  // namespace braid::app
