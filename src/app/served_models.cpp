#include "app/served_models.h"

#include "app/embedded_model.h"
#include "files/part_name.h"

#include <algorithm>

namespace braid::app {

std::string model_id(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  path.remove_prefix(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  if (path.ends_with(".gguf")) path.remove_suffix(5);
  const auto part = files::part_name(path);
  return std::string(part && part->number == 1 ? part->stem : path);
}

namespace {

// Nothing guesses for itself.
std::string other_than(const std::string& draft, const std::string& model) { return draft == "none" || draft == model ? "" : draft; }

}  // namespace

std::string draft_for_later(const ServeOptions& options, const std::string& model) {
  return options.drafts.size() == 1 ? other_than(options.drafts.front(), model) : "";
}

std::vector<ServedModelOptions> models_of(const ServeOptions& options) {
  const bool is_embedded = options.files.empty() && options.models_dirs.empty();
  const std::vector<std::string> files = is_embedded ? std::vector<std::string>(1) : options.files;
  std::vector<ServedModelOptions> models;
  for (std::size_t i = 0; i < files.size(); ++i) {
    ServedModelOptions& model = models.emplace_back();
    model.model = options.model;
    model.model.model = files[i];
    const auto nth = [i](const auto& list) { return list[std::min(i, list.size() - 1)]; };
    if (!options.chat_templates.empty()) model.model.chat_template = nth(options.chat_templates);
    if (!options.poolings.empty()) model.pooling = nth(options.poolings);
    if (!options.drafts.empty()) model.model.draft = other_than(nth(options.drafts), files[i]);
    model.id = !options.aliases.empty() ? nth(options.aliases) : model_id(files[i].empty() ? kEmbeddedModelName : files[i]);
  }
  return models;
}

DiskOptions disk_options_of(const ServeOptions& options, const std::string& id) {
  constexpr std::size_t kUsualModels = 4;   // that are loaded at once, where any number may be
  constexpr std::size_t kRegistryPart = 4;  // of the bytes are its models', beside those of the command line
  const auto most = options.residence.max_models > 0 ? static_cast<std::size_t>(options.residence.max_models) : kUsualModels;
  const std::vector<ServedModelOptions> named = models_of(options);
  const bool is_named = std::ranges::any_of(named, [&id](const ServedModelOptions& model) { return model.id == id; });
  DiskOptions part = options.disk;
  if (part.directory.empty()) return part;
  std::size_t models = std::max<std::size_t>(1, options.files.size());
  if (!options.models_dirs.empty()) {
    models = std::max<std::size_t>({2, options.files.size(), most});
  } else if (is_named) {
    part.limit -= part.limit / kRegistryPart;
    if (models == 1) return part;
  } else {
    part.limit /= kRegistryPart;
    models = most;
  }
  std::string name = id;
  std::ranges::replace(name, '/', '_');
  if (name.starts_with('.')) name.front() = '_';
  part.directory += "/" + name;
  part.limit /= models;
  return part;
}

}  // namespace braid::app
