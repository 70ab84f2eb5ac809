#include <app/cli/serve/groups.h>
#include <app/option_types.h>

namespace braid::app {

void add_listen_options(CLI::App& app, ServeOptions& options) {
  app.add_option("--host", options.http.host, "Address to listen on")->capture_default_str();
  add_port(app, "--port", options.http.port, "Port to listen on; 0 picks a free one and prints it");
  app.add_option_function<std::string>(
         "--metrics", [&options](const std::string& state) { options.http.metrics = state == "on"; },
         "GET /metrics and /v1/metrics: on or off")
      ->default_str("on")
      ->check(CLI::IsMember({"on", "off"}));
  add_duration(app, "--drain-timeout", options.drain_timeout, "How long running answers may go on after SIGTERM");
}

}  // namespace braid::app
