#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/embedded_model.h"
#include "app/option_types.h"

#include <filesystem>
#include <utility>

namespace braid::app {

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Answer one prompt, or chat, in the terminal");
  run->add_option("model", options.model.model,
                  "A GGUF file, a Hugging Face folder, or the name of a model that is here; the embedded model if not given");
  run->add_option("prompt", options.prompt, "What to answer; a chat if not given");
  run->add_option("--system", options.system, "System prompt");
  add_integer(*run, "--max-tokens", options.max_tokens, 0, kMostTokens, "Longest answer in tokens; 0: what the context leaves");
  add_number(*run, "--temperature", options.temperature, 0.0, 2.0, "0 always takes the most likely token");
  add_number(*run, "--top-p", options.top_p, 0.0, 1.0, "Take from the most likely tokens of this total probability");
  add_integer(*run, "--top-k", options.top_k, 0, kMostTokens, "Take from this many most likely tokens; 0: all");
  add_number(*run, "--min-p", options.min_p, 0.0, 1.0, "Leave out tokens less likely than this share of the best");
  add_seed(*run, "--seed", options.seed, "Makes the answer repeatable");
  add_model_options(*run, options.model);
  add_chat_template(*run, options.model);
  run->add_option("--host", options.host, "URL of a server that answers; the one that has the data folder open, or none, if not given")
      ->type_name("URL")
      ->envname("BRAID_HOST");
  run->add_flag("--json", options.json, "Print each answer as a line of JSON, once it is whole");
  add_data_options(*run, options.data);
  run->footer(
      "With one argument: a name that ends in .gguf, that exists, or that a model here has is the model; anything else is the prompt.");
  return run;
}

void settle_run_arguments(RunOptions& options) {
  if (!options.prompt.empty() || options.model.model.empty()) return;
  std::error_code ignored;
  if (options.model.model.ends_with(".gguf") || options.model.model == kEmbeddedModelName ||
      std::filesystem::exists(options.model.model, ignored))
    return;
  options.prompt = std::move(options.model.model);
  options.model.model.clear();
}

}  // namespace braid::app
