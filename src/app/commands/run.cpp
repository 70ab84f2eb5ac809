#include "app/chat/chat_session.h"
#include "app/chat/line_editor.h"
#include "app/chat/remote_partner.h"
#include "app/chat/shown_files.h"
#include "app/commands/commands.h"
#include "app/conversation.h"
#include "app/embedded_model.h"
#include "app/load_models.h"
#include "app/load_progress.h"
#include "app/models/data_folder.h"
#include "app/models/model_service.h"
#include "app/models/open_registry.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::app {
namespace {

Result<SingleModel> load(const ModelOptions& options) {
  LoadProgress progress;
  return load_model(
      options, kSingleUser.max_batch,
      [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); }, false);
}

// Whether the word may only be the name of a model: no file, and not within the binary.
bool may_be_model(const std::string& word) {
  std::error_code ignored;
  return !word.empty() && !word.ends_with(".gguf") && word != kEmbeddedModelName && !std::filesystem::exists(word, ignored) &&
         word.find_first_of(" \t\n") == std::string::npos;
}

struct Ended {
  int code = EXIT_SUCCESS;
  std::optional<std::string> next = {};  // the model that the chat is to go on with
};

// Answers the prompt of the options, or else whatever is typed.
Ended answer(ChatPartner& partner, ChatState state, const RunOptions& options, ChatModels models) {
  if (!options.prompt.empty()) {
    Result<Value> message = typed_message(options.prompt);
    if (!message) return {report(message.error())};
    state.messages.push_back(std::move(*message));
    const Result<std::string> said = partner.answer(state);
    return {said ? EXIT_SUCCESS : report(said.error())};
  }
  const std::string folder = data_folder(options.data.folder);
  std::error_code ignored;
  LineEditor editor(std::filesystem::is_directory(folder, ignored) ? folder + "/history" : "");
  return {EXIT_SUCCESS, ChatSession(partner, editor, std::move(state), folder, std::move(models)).run()};
}

// What the model's maker wants, beneath what the command line says.
ChatState state_of(const RunOptions& options, const ModelSettings& settings) {
  const RunOptions usual;
  ChatState state{options.system.empty() ? settings.system : options.system, {}, settings.messages};
  for (const auto& [name, value] : settings.parameters) {
    const bool is_said = (name == "temperature" && options.temperature != usual.temperature) ||
                         (name == "top_p" && options.top_p != usual.top_p) || (name == "top_k" && options.top_k != usual.top_k) ||
                         (name == "min_p" && options.min_p != usual.min_p) || (name == "seed" && options.seed) ||
                         (name == "num_predict" && options.max_tokens != usual.max_tokens);
    if (!is_said) state.parameters.emplace_back(name, value);
  }
  return state;
}

// `name`: in the registry, or empty.
Ended run_here(const RunOptions& options, const ModelSettings& settings, const std::string& name) {
  const auto loaded = load(options.model);
  if (!loaded) return {report(loaded.error())};
  Conversation conversation(loaded->model, options);
  return answer(conversation, state_of(options, settings), options, ChatModels(options, name, {}));
}

// Through a server; what its model's maker wants it knows itself.
Ended run_there(const std::string& url, const RunOptions& options, const Value& shown) {
  const RunOptions usual;
  ChatState state{options.system, {}, {}};
  const auto add = [&](const char* name, bool is_said, Value value) {
    if (is_said) state.parameters.emplace_back(name, std::move(value));
  };
  add("temperature", options.temperature != usual.temperature, options.temperature);
  add("top_p", options.top_p != usual.top_p, options.top_p);
  add("top_k", options.top_k != usual.top_k, options.top_k);
  add("min_p", options.min_p != usual.min_p, options.min_p);
  add("num_predict", options.max_tokens != usual.max_tokens, options.max_tokens);
  if (options.seed) state.parameters.emplace_back("seed", static_cast<std::int64_t>(*options.seed));
  const std::unique_ptr<ChatPartner> partner = remote_partner(url, options);
  const Value* before = shown.find("messages");
  const auto* messages = before != nullptr ? before->get_if<ValueList>() : nullptr;
  return answer(*partner, std::move(state), options,
                ChatModels(options, options.model.model, messages != nullptr ? *messages : ValueList()));
}

// By its name: of the server that runs, or of the data folder. Nullopt: there is none.
std::optional<Ended> run_named(RunOptions options) {
  const std::string folder = data_folder(options.data.folder);
  std::optional<std::string> server = options.host.empty() ? server_of(folder) : std::optional(options.host);
  if (server) {
    const Result<Value> shown = remote_service(*server, options.data)->show(options.model.model, false);
    if (shown) return run_there(*server, options, *shown);
    if (shown.error().code != ErrorCode::kNotFound) return Ended{report(shown.error())};
    return std::nullopt;
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder + "/manifests", ignored)) return std::nullopt;
  const Result<std::shared_ptr<ModelRegistry>> registry = open_registry(options.data);
  if (!registry) return Ended{report(registry.error())};
  const Result<StoredModel> found = (*registry)->find(options.model.model);
  if (!found) return std::nullopt;
  const Result<ModelSettings> settings = (*registry)->settings(found->name);
  if (!settings) return Ended{report(settings.error())};
  if (!settings->adapters.empty())
    return Ended{report(
        {ErrorCode::kUnsupported, fmt::format("{} has adapters, which a server applies: `braid serve` starts one", found->name), ""})};
  (*registry)->note_use(found->name);
  options.model.model = found->path;
  return run_here(options, *settings, found->name);
}

int report_unknown(const std::string& model) {
  report({ErrorCode::kNotFound, fmt::format("there is neither a file nor a model '{}'; `braid list` tells which there are", model), ""});
  return kExitNotFound;
}

// The chat, and what it goes on with.
int run_on(Ended ended, RunOptions options) {
  options.prompt.clear();
  while (ended.next) {
    options.model.model = std::move(*ended.next);
    std::optional<Ended> next = run_named(options);
    if (!next) return report_unknown(options.model.model);  // it has been removed meanwhile
    ended = std::move(*next);
  }
  return ended.code;
}

}  // namespace

int run_command(const RunOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("braid"));
  spdlog::set_level(spdlog::level::warn);
  const bool one_word = options.model.model.empty() && may_be_model(options.prompt);  // which may be either
  if (one_word || may_be_model(options.model.model)) {
    RunOptions named = options;
    if (one_word) named.model.model = std::exchange(named.prompt, std::string());
    if (std::optional<Ended> ended = run_named(std::move(named))) return run_on(std::move(*ended), options);
    if (!one_word) return report_unknown(options.model.model);
  }
  return run_on(run_here(options, {}, ""), options);
}

}  // namespace braid::app
