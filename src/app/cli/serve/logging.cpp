#include "app/cli/serve/groups.h"

#include <string>
#include <utility>
#include <vector>

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
  app.add_option("--log-file", options.file, "File to which the log goes instead of standard error; opened anew at SIGUSR1")
      ->type_name("FILE");
  app.add_flag("--access-log", options.access, "A line for every request, at level info");
  app.add_option_function<std::vector<std::string>>(
         "--trusted-proxy",
         [&options](const std::vector<std::string>& words) {
    Result<net::TrustedProxies> proxies = net::TrustedProxies::parse(words);
    if (!proxies) throw CLI::ValidationError("--trusted-proxy", proxies.error().message);
    options.proxies = std::move(*proxies);
         },
         "Network of proxies whose X-Forwarded-For names the client in --access-log; unix: those on the Unix socket")
      ->type_name("CIDR")
      ->delimiter(',');
  app.add_option("--otlp-endpoint", options.traces.endpoint, "Collector of OpenTelemetry that gets the spans of generations, over HTTP")
      ->type_name("URL")
      ->check([](const std::string& url) {
        return url.starts_with("http://") || url.starts_with("https://") ? "" : "'" + url + "' is no URL such as http://127.0.0.1:4318";
      });
  app.add_option("--trace-share", options.traces.share, "Share of the requests that are traced, of those whose traceparent does not say it")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
}

std::string log_fault(const LogOptions& options) {
  const bool silent = options.level == "warning" || options.level == "error" || options.level == "off";
  if (options.traces.share < 1.0 && options.traces.endpoint.empty()) return "--trace-share is about --otlp-endpoint, which is not given";
  if (!options.proxies.empty() && !options.access) return "--trusted-proxy is about --access-log, which is not given";
  return options.access && silent ? "--access-log writes at level info, which --log-level leaves out" : "";
}

}  // namespace braid::app
