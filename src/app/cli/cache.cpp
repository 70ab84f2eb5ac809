#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/option_types.h"

namespace braid::app {

CLI::App* add_cache(CLI::App& app, CacheExportOptions& to, CacheImportOptions& from) {
  CLI::App* group = app.add_subcommand("cache", "Move the keys and values of a prompt between servers and tools");
  group->require_subcommand(1);
  CLI::App* out = group->add_subcommand("export", "Compute a prompt and write its keys and values as safetensors");
  out->add_option("model", to.model.model, "A GGUF file or a Hugging Face folder, or braid-demo for the embedded model")->required();
  out->add_option("output", to.output, "File to write")->required();
  CLI::Option* prompt = out->add_option("--prompt", to.prompt, "Text of the prompt, as /v1/completions takes it");
  out->add_option("--prompt-file", to.prompt_file, "File with the text")->excludes(prompt);
  add_model_options(*out, to.model);
  add_chat_template(*out, to.model);
  CLI::App* in = group->add_subcommand("import", "Put such a file into the folder of a server that is not running");
  in->add_option("model", from.model.model, "The model it was computed with")->required();
  in->add_option("input", from.input, "File to read")->required();
  in->add_option("--kv-disk", from.disk.directory, "Folder that the server will be given")->required();
  add_size(*in, "--kv-disk-limit", from.disk.limit, "Most bytes that the folder may take");
  in->add_option("--cache-salt", from.cache_salt, "cache_salt of the requests that may use it");
  add_model_options(*in, from.model);
  add_chat_template(*in, from.model);
  return group;
}

std::string export_fault(const CacheExportOptions& options) {
  return options.prompt.empty() && options.prompt_file.empty() ? "--prompt or --prompt-file is needed" : "";
}

}  // namespace braid::app
