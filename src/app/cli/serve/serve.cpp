#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/cli/serve/groups.h"

#include <fmt/format.h>
#include <map>
#include <string>

namespace braid::app {

CLI::App* add_serve(CLI::App& app, ServeOptions& options, std::string& config) {
  CLI::App* serve = app.add_subcommand("serve", "Serve a model over HTTP with the OpenAI API");
  serve->add_option("model", options.model.model,
                    "A GGUF file (of a split one the first part) or a Hugging Face folder; the embedded model if not given");
  serve->add_option("--config", config, "YAML file with these options as keys; the command line wins");
  add_listen_options(*serve->add_option_group("Listening"), options);
  add_limit_options(*serve->add_option_group("Limits"), options.http);
  CLI::App& model = *serve->add_option_group("Model and memory");
  model.add_option("--alias", options.alias, "The model's id in the API; its file name if not given");
  add_model_options(model, options.model);
  model.add_option("--pooling", options.pooling, "What of a text's last states /v1/embeddings gives: last, mean or cls (the first one)")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Pooling>{{"last", Pooling::kLast}, {"mean", Pooling::kMean}, {"cls", Pooling::kFirst}}));
  model.add_flag("--no-model", options.no_model, "Start without a model");
  model.add_flag("--no-warmup", options.no_warmup, "Skip the first prefill and decode before /readyz");
  add_batch_options(*serve->add_option_group("Batching"), options.batch);
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
  if (options.no_model && !options.model.model.empty()) return fmt::format("--no-model contradicts the model '{}'", options.model.model);
  for (const std::string& fault :
       {listen_fault(options), batch_fault(options.batch), watch_fault(options.watch), cache_fault(options), log_fault(options.log)})
    if (!fault.empty()) return fault;
  return {};
}

}  // namespace braid::app
