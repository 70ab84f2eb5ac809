#include "app/models/open_registry.h"

#include "app/loaded_model.h"
#include "app/models/data_folder.h"
#include "kernels/thread_team.h"
#include "model/convert.h"
#include "model/families/families.h"
#include "model/quantization_mix.h"
#include "registry/local_registry.h"
#include "text/chat_template.h"
#include "text/ggml_tokenizer.h"

#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::app {
namespace {

// A file that has been refused once half-way: thrown through the writer, which knows no other way out.
struct Unwanted {};

std::string variable_or(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : std::move(otherwise);
}

registry::RemoteOptions remote_options(const DataOptions& options) {
  registry::RemoteOptions remote;
  remote.mirror = options.registry_mirror;
  remote.registry_token = variable_or("BRAID_REGISTRY_TOKEN", "");
  remote.hub = variable_or("HF_ENDPOINT", remote.hub);
  remote.hub_token = variable_or("HF_TOKEN", "");
  remote.key_file = key_file(data_folder(options.folder));
  remote.http.ca_file = options.ca_file;
  return remote;
}

Result<void> quantize(const std::string& from, const std::string& to, const std::string& type,
                      const std::function<bool(std::uint64_t, std::uint64_t)>& go_on) {
  const model::QuantizationMix* mix = model::quantization_mix(type);
  if (mix == nullptr) return invalid_argument(fmt::format("'{}' is no quantisation that is written here", type), "quantize");
  Result<files::GgufFile> file = open_model(from);
  if (!file) return file.error();
  if (const auto described = model::describe_model(*file); !described) return described.error();
  if (file->version() == 0) {
    auto metadata = file->metadata();
    for (const std::string& warning : text::add_ggml_tokenizer(metadata)) spdlog::warn("{}", warning);
    file = file->with_metadata(std::move(metadata));
  }
  kernels::ThreadTeam team(1);  // beside what is being served
  try {
    return model::quantize_model(*file, to, {.mix = mix}, team, [&go_on](std::string_view, std::uint64_t done, std::uint64_t total) {
      if (!go_on(done, total)) throw Unwanted();
    });
  } catch (const Unwanted&) {
    return Error{ErrorCode::kCancelled, "it was stopped", ""};
  }
}

Result<void> check_template(const std::string& text) {
  const Result<text::ChatTemplate> parsed = text::ChatTemplate::parse(text, "", "");
  if (parsed) return {};
  return invalid_argument(fmt::format("'template' cannot be used: {}", parsed.error().message), "template");
}

registry::LocalRegistryOptions local_options(const DataOptions& options, const std::string& folder) {
  registry::LocalRegistryOptions local;
  local.library.data_folder = folder;
  local.library.warn = [](const std::string& sentence) { spdlog::warn("{}", sentence); };
  local.remote = remote_options(options);
  local.tools.quantize = quantize;
  local.tools.check_template = check_template;
  return local;
}

Result<std::shared_ptr<ModelRegistry>> open(registry::LocalRegistryOptions local) {
  if (local.library.data_folder.empty()) return Error{ErrorCode::kIo, "there is no home for a data folder; name one with --data-dir", ""};
  Result<std::unique_ptr<ModelRegistry>> registry = registry::open_registry(std::move(local));
  if (!registry) return registry.error();
  return std::shared_ptr<ModelRegistry>(std::move(*registry));
}

}  // namespace

Result<std::shared_ptr<ModelRegistry>> open_registry(const DataOptions& options) {
  registry::LocalRegistryOptions local = local_options(options, data_folder(options.folder));
  local.library.owns_folders = false;
  return open(std::move(local));
}

Result<std::shared_ptr<ModelRegistry>> registry_to_serve(const ServeOptions& options, std::function<void()> changed) {
  registry::LocalRegistryOptions local = local_options(options.data, data_folder(options.data.folder));
  local.library.model_folders = options.models_dirs;
  local.watches = true;
  local.changed = std::move(changed);
  Result<std::shared_ptr<ModelRegistry>> registry = open(std::move(local));
  if (registry || !options.data.folder.empty()) return registry;
  spdlog::warn("models can be neither pulled nor made: {}", registry.error().message);
  return std::shared_ptr<ModelRegistry>();
}

}  // namespace braid::app
