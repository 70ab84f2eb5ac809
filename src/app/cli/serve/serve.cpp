#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/cli/serve/groups.h"

#include <fmt/format.h>
#include <string>

namespace braid::app {

CLI::App* add_serve(CLI::App& app, ServeOptions& options, std::string& config) {
  CLI::App* serve = app.add_subcommand("serve", "Serve models over HTTP with the OpenAI API");
  serve->add_option("--config", config, "YAML file with these options as keys; the command line wins");
  add_listen_options(*serve->add_option_group("Listening"), options);
  add_limit_options(*serve->add_option_group("Limits"), options.http);
  CLI::App& model = *serve->add_option_group("Model and memory");
  add_served_models(*serve, model, options);
  add_model_options(model, options.model);
  add_rank_options(model, options.model.ranks);
  model.add_flag("--no-warmup", options.no_warmup, "Skip the first prefill and decode before /readyz");
  add_data_options(*serve->add_option_group("Registry"), options.data);
  add_batch_options(*serve->add_option_group("Batching"), options.batch);
  add_speculation_options(*serve->add_option_group("Speculation"), options);
  add_cache_options(*serve->add_option_group("Cache"), options);
  add_answer_options(*serve->add_option_group("Answers"), options);
  add_watch_options(*serve->add_option_group("Watchdog"), options.watch);
  add_access_options(*serve->add_option_group("Access"), options);
  add_log_options(*serve->add_option_group("Logging"), options.log);
  return serve;
}

// What a shell makes of an unset variable, behind which the next option would be taken for the value. Nobody means either, and for
// --api-key-file the one without a key would let everybody in.
std::string value_fault(const CLI::App& serve) {
  for (const CLI::Option* option : serve.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) return fmt::format("{}: the value is empty", option->get_name());
      if (value.starts_with("--")) return fmt::format("{}: the value is missing: '{}' is an option", option->get_name(), value);
    }
  }
  for (const CLI::App* group : serve.get_subcommands([](const CLI::App*) { return true; }))
    if (std::string fault = value_fault(*group); !fault.empty()) return fault;
  return {};
}

std::string serve_fault(const ServeOptions& options) {
  for (const std::string& fault : {models_fault(options), listen_fault(options), batch_fault(options.batch), speculation_fault(options),
                                   watch_fault(options.watch), cache_fault(options), access_fault(options), log_fault(options.log)})
    if (!fault.empty()) return fault;
  return {};
}

}  // namespace braid::app
