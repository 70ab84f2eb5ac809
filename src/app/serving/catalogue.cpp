#include "app/serving/catalogue.h"

#include "app/nearest_name.h"
#include "app/network_folder.h"
#include "app/served_models.h"
#include "braid/model_name.h"
#include "files/hf_folder.h"
#include "files/part_name.h"
#include "text/go_template/chat.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>
#include <spdlog/spdlog.h>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;
constexpr std::size_t kMostNames = 8;  // in an error

struct Files {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;
};

std::int64_t unix_time_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

void add_file(const fs::path& path, Files& files) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return;
  files.bytes += bytes;
  const auto time = fs::last_write_time(path, error);
  if (!error) files.modified = std::max(files.modified, unix_time_of(time));
}

// Of a split model's file; none for any other.
std::optional<files::PartName> part_of(std::string_view name) {
  constexpr std::string_view kExtension = ".gguf";
  return name.ends_with(kExtension) ? files::part_name(name.substr(0, name.size() - kExtension.size())) : std::nullopt;
}

bool is_later_part(std::string_view name) {
  const auto part = part_of(name);
  return part && part->number > 1;
}

bool has_weights(const fs::path& folder, Files& files) {
  std::error_code error;
  if (!fs::exists(folder / "config.json", error)) return false;
  bool has = false;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") {
      has = true;
      add_file(at->path(), files);
    }
  }
  return has;
}

Files files_of(const std::string& path) {
  Files files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    has_weights(path, files);
    return files;
  }
  add_file(path, files);
  const std::string name = fs::path(path).filename().string();
  if (const auto first = part_of(name); first && first->number == 1) {
    for (fs::directory_iterator at(fs::path(path).parent_path(), error), end; !error && at != end; at.increment(error)) {
      const std::string other = at->path().filename().string();
      const auto part = part_of(other);
      if (part && part->stem == first->stem && part->number > 1) add_file(at->path(), files);
    }
  }
  return files;
}

class Scan {
 public:
  Scan(const ServeOptions& options, std::set<std::string>& ids, std::vector<FoundModel>& found)
      : options_(options), ids_(ids), found_(found) {}

  void look(const fs::path& folder, const std::string& prefix, int depth) {
    std::error_code error;
    for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end; !error && at != end;
         at.increment(error)) {
      const std::string name = at->path().filename().string();
      std::error_code unknown;
      if (name.starts_with('.')) continue;
      if (fs::is_directory(at->path(), unknown)) {
        Files files;
        if (has_weights(at->path(), files)) {
          if (!holds_network(at->path().string())) add(at->path(), prefix + name, files);
        } else if (depth > 1) {
          look(at->path(), prefix + name + "/", depth - 1);
        }
      } else if (name.ends_with(".gguf") && name.find("mmproj") == std::string::npos && !is_later_part(name)) {
        add(at->path(), prefix + model_id(name), files_of(at->path().string()));
      }
    }
  }

 private:
  void add(const fs::path& path, const std::string& id, const Files& files) {
    if (!ids_.insert(id).second) return;
    FoundModel& model = found_.emplace_back();
    model.options.model = options_.model;
    model.options.model.model = path.string();
    model.options.model.draft = draft_for_later(options_, model.options.model.model);
    model.options.id = id;
    model.bytes = files.bytes;
    model.modified = files.modified;
  }

  const ServeOptions& options_;
  std::set<std::string>& ids_;
  std::vector<FoundModel>& found_;
};

// What its maker wants. A template takes the place of that of the weights, but for one in Go's form that came with them: what the weights say
// themselves is their own.
void add_settings(ModelRegistry& registry, const StoredModel& stored, ServedModelOptions& options) {
  Result<ModelSettings> settings = registry.settings(stored.name);
  if (!settings) return spdlog::warn("{}: {}", stored.name, settings.error().message);
  const bool is_of_weights = stored.source == "pulled" && text::go::is_go_template(settings->template_text);
  if (!settings->template_text.empty())
    (is_of_weights ? options.model.usual_template : options.model.chat_template) = settings->template_file;
  options.settings = std::make_shared<const ModelSettings>(std::move(*settings));
}

// Those that have been pulled or made. Files of watched folders are found by Scan.
void add_stored(const ServeOptions& options, ModelRegistry& registry, std::set<std::string>& ids, std::vector<FoundModel>& found) {
  constexpr std::string_view kUsualTag = ":latest";
  const Result<std::vector<StoredModel>> models = registry.list({});
  if (!models) return spdlog::warn("the registry: {}", models.error().message);
  for (const StoredModel& stored : *models) {
    std::string id = stored.name;
    if (id.ends_with(kUsualTag)) id.resize(id.size() - kUsualTag.size());
    if (stored.source == "folder" || !ids.insert(id).second) continue;
    FoundModel& model = found.emplace_back();
    model.options.model = options.model;
    model.options.model.model = stored.path;
    model.options.model.draft = draft_for_later(options, stored.path);
    model.options.id = std::move(id);
    model.bytes = stored.bytes;
    model.modified = stored.modified;
    add_settings(registry, stored, model.options);
    model.options.on_loaded = [&registry, name = stored.name] { registry.note_use(name); };
  }
}

Error unknown_model(std::string_view name, std::span<const NamedModel> models) {
  if (models.empty()) return {ErrorCode::kNotFound, fmt::format("the model '{}' does not exist; this server has none", name), "model"};
  std::vector<std::string_view> ids;
  for (const NamedModel& model : models) ids.push_back(model.id);
  const bool is_all = ids.size() <= kMostNames;
  if (!is_all) {
    const std::string_view asked = name.substr(0, 256);
    std::ranges::stable_sort(ids, {}, [asked](std::string_view id) { return edit_distance(asked, id.substr(0, 256)); });
    ids.resize(kMostNames);
  }
  return {ErrorCode::kNotFound,
          fmt::format("the model '{}' does not exist; {} '{}'", name, is_all ? "this server has" : "the nearest names are",
                      fmt::join(ids, "', '")),
          "model"};
}

}  // namespace

std::vector<FoundModel> find_models(const ServeOptions& options, ModelRegistry* registry) {
  std::vector<FoundModel> found;
  std::set<std::string> ids;
  for (ServedModelOptions& model : models_of(options)) {
    ids.insert(model.id);
    if (holds_network(model.model.model)) continue;
    const Files files = files_of(model.model.model);
    found.push_back({std::move(model), {}, files.bytes, files.modified, true});
  }
  const auto first = static_cast<std::ptrdiff_t>(found.size());
  for (const std::string& folder : options.models_dirs) Scan(options, ids, found).look(folder, "", kDepth);
  if (registry != nullptr) add_stored(options, *registry, ids, found);
  std::ranges::sort(found.begin() + first, found.end(), {}, [](const FoundModel& model) { return model.options.id; });
  return found;
}

Result<std::size_t> find_named(std::string_view name, std::span<const NamedModel> models) {
  std::vector<std::size_t> alike;
  std::vector<std::size_t> begun;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const NamedModel& model = models[i];
    if (model.id == name) return i;
    const auto any = [&](const auto& fits) { return fits(model.id) || std::ranges::any_of(model.aliases, fits); };
    if (any([name](std::string_view known) { return may_name(name, known); })) alike.push_back(i);
    if (any([name](std::string_view known) { return known.starts_with(name); })) begun.push_back(i);
  }
  for (std::size_t i = 0; i < models.size(); ++i)
    if (std::ranges::find(models[i].aliases, name) != models[i].aliases.end()) return i;
  const std::vector<std::size_t>& meant = alike.empty() ? begun : alike;
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) return unknown_model(name, models);
  std::vector<NamedModel> choice;
  for (const std::size_t index : meant) choice.push_back(models[index]);
  Error error = unknown_model(name, choice);
  std::vector<std::string_view> ids;
  for (std::size_t i = 0; i < std::min(choice.size(), kMostNames); ++i) ids.push_back(choice[i].id);
  error.message = fmt::format("the model '{}' may be any of '{}'", name, fmt::join(ids, "', '"));
  return error;
}

}  // namespace braid::app
