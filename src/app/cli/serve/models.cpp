// Which models are served, and under which names.
#include "app/cli/model.h"
#include "app/cli/serve/groups.h"
#include "app/option_types.h"
#include "app/served_models.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace braid::app {

namespace {

// [MODEL:]NAME=PATH
AdapterOption adapter_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::size_t colon = name.rfind(':');
  AdapterOption adapter;
  if (equals != std::string::npos) adapter.path = text.substr(equals + 1);
  if (colon != std::string::npos) adapter.model = name.substr(0, colon);
  adapter.name = name.substr(colon == std::string::npos ? 0 : colon + 1);
  return adapter;
}

void add_adapters(CLI::App& group, ServeOptions& options) {
  group
      .add_option_function<std::vector<std::string>>(
          "--lora",
          [&options](const std::vector<std::string>& given) {
    for (const std::string& text : given) options.adapters.push_back(adapter_of(text));
          },
          "An adapter, [MODEL:]NAME=PATH: a folder of PEFT, or a GGUF file; requests name it without its path; several times")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const AdapterOption adapter = adapter_of(text);
        return adapter.name.empty() || adapter.path.empty() ? "'" + text + "' is no [MODEL:]NAME=PATH" : "";
      });
  group
      .add_option("--adapter-dir", options.http.adapter_dirs,
                  "A folder below which an administrator's requests may name adapters to be loaded; may be given several times")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
  group
      .add_option("--weights-dir", options.http.weights_dirs,
                  "A folder below which an administrator's requests may name files of newer weights; may be given several times")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

void add_poolings(CLI::App& group, ServeOptions& options) {
  static const std::map<std::string, Pooling> kPoolings = {
      {"last", Pooling::kLast}, {"mean", Pooling::kMean}, {"cls", Pooling::kFirst}, {"none", Pooling::kEach}};
  group
      .add_option_function<std::vector<std::string>>(
          "--pooling",
          [&options](const std::vector<std::string>& given) {
    for (const std::string& text : given) options.poolings.push_back(kPoolings.at(text));
          },
          "What of a text's last states /v1/embeddings gives: last, mean, cls (the first one) or none (each); for all models or one each")
      ->type_name("WHICH")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return kPoolings.contains(text) ? "" : fmt::format("'{}' is no pooling: write last, mean, cls or none", text);
      });
}

}  // namespace

void add_served_models(CLI::App& serve, CLI::App& group, ServeOptions& options) {
  serve.add_option("model", options.files,
                   "GGUF files (of a split one the first part) and Hugging Face folders, served together; the embedded model if not given");
  group.add_option("--alias", options.aliases, "A model's id in the API; its file name if not given; of several models one for each")
      ->type_name("NAME")
      ->allow_extra_args(false);
  group.add_option("--chat-template", options.chat_templates, kChatTemplateHelp)->type_name("NAME")->allow_extra_args(false);
  add_poolings(group, options);
  add_adapters(group, options);
  group
      .add_option("--models-dir", options.models_dirs,
                  "A folder whose GGUF files and Hugging Face folders are loaded when a request names them; several times")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory);
  add_integer(group, "--max-models", options.residence.max_models, 0, 10'000,
              "Models in memory at once: the one unused for longest makes room; 0: as many as fit");
  add_size(group, "--memory", options.residence.memory,
           "Memory of all models together, KV pools included; what the machine or its control group leaves if not given");
  add_timeout(group, "--load-timeout", options.residence.load_timeout, "How long a request waits for its model to be loaded");
  add_duration(group, "--keep-alive", options.residence.keep_alive,
               "How long a model that a request has loaded stays so after its last one; keep_alive of Ollama's requests wins");
  group
      .add_option("--mmproj", options.model.mmproj,
                  "A GGUF file of an image tower, with which the model sees; what is named mmproj beside it if not given")
      ->type_name("FILE");
  add_size(group, "--image-cache", options.batch.image_cache, "Memory of what became of images: asked about again, they are not looked at");
  group.add_flag("--no-model", options.no_model, "Start without a model");
}

namespace {

// What a model that several processes compute has not.
std::string ranks_fault(const ServeOptions& options) {
  if (options.model.ranks.count == 1)
    return options.model.ranks.hostfile.empty() && options.model.ranks.listen.empty() && options.model.ranks.stages == 1 &&
                   !options.model.ranks.on_nodes
               ? ""
               : "--hostfile, --ranks-listen, --ranks-on-nodes and --stages are for --ranks";
  if (options.model.ranks.count % options.model.ranks.stages != 0)
    return fmt::format("--stages {}: {} ranks cannot be divided among so many", options.model.ranks.stages, options.model.ranks.count);
  if (!options.models_dirs.empty() || options.files.size() != 1) return "--ranks divides one model: name its file or folder, and no other";
  if (std::ranges::any_of(options.drafts, [](const std::string& draft) { return draft != "none"; })) return "--ranks contradicts --draft";
  if (options.batch.kv_verify) return "--ranks contradicts --kv-verify";
  if (options.model.ranks.count_here() == 0 && !options.model.kv_memory)
    return "--hostfile: say with --kv-memory how much each rank's pool may take: what is free here says nothing of other machines";
  return "";
}

}  // namespace

std::string models_fault(const ServeOptions& options) {
  if (std::string fault = ranks_fault(options); !fault.empty()) return fault;
  if (options.no_model && !options.files.empty()) return fmt::format("--no-model contradicts the model '{}'", options.files.front());
  if (options.no_model && !options.models_dirs.empty()) return "--no-model contradicts --models-dir";
  if (options.files.size() > 1 && !options.model.mmproj.empty()) return "--mmproj is of one model, and several are to be served";
  const std::size_t most = options.models_dirs.empty() ? 1 : 0;
  const std::size_t models = std::max<std::size_t>(most, options.files.size());
  if (options.residence.max_models > 0 && models > static_cast<std::size_t>(options.residence.max_models))
    return fmt::format("--max-models {} contradicts {} models that are named", options.residence.max_models, models);
  const auto count_fault = [&](const char* name, std::size_t given, bool one_for_all) -> std::string {
    if (given == 0 || given == models || (given == 1 && one_for_all)) return "";
    return fmt::format("{} is given {} times for {} models: give it {}once for each, in their order", name, given, models,
                       one_for_all ? "once, or " : "");
  };
  for (const std::string& fault :
       {count_fault("--alias", options.aliases.size(), false), count_fault("--chat-template", options.chat_templates.size(), true),
        count_fault("--pooling", options.poolings.size(), true), count_fault("--draft", options.drafts.size(), true)})
    if (!fault.empty()) return fault;
  std::set<std::string> ids;
  for (const ServedModelOptions& model : models_of(options))
    if (!ids.insert(model.id).second) return fmt::format("two models have the id '{}': give each a name of its own by --alias", model.id);
  return "";
}

}  // namespace braid::app
