#include "app/models/recipe_file.h"

#include "registry/durable_file.h"
#include "registry/manifest.h"
#include "registry/modelfile.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <utility>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostModelfileBytes = std::size_t{16} << 20;

Result<std::string> read_modelfile_text(const std::string& path) {
  if (path != "-") return registry::read_small_file(path, kMostModelfileBytes);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// As a shell would see it from the Modelfile's folder.
fs::path resolved(const std::string& text, const fs::path& folder) {
  const char* home = std::getenv("HOME");
  if (text.starts_with("~/") && home != nullptr) return fs::path(home) / text.substr(2);
  return fs::path(text).is_absolute() ? fs::path(text) : folder / text;
}

Result<void> put(ModelService& service, const fs::path& path, const std::string& name, ModelRecipe::Files& files,
                 const ProgressSink& progress) {
  Result<std::string> digest = service.put_file(path.string(), progress);
  if (!digest) return digest.error();
  files.emplace_back(name, std::move(*digest));
  return {};
}

// A GGUF file, or the two files of a folder of PEFT.
Result<void> put_adapter(ModelService& service, const fs::path& path, ModelRecipe::Files& files, const ProgressSink& progress) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return Error{ErrorCode::kNotFound, fmt::format("ADAPTER {}: there is no such file", path.string()), ""};
  if (!fs::is_directory(path, failure)) return put(service, path, path.filename().string(), files, progress);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    if (const Result<void> done = put(service, path / name, name, files, progress); !done) return done;
  return {};
}

// A file, or all files of a folder that a model of the hub may have.
Result<void> put_all(ModelService& service, const fs::path& path, ModelRecipe& recipe, const ProgressSink& progress) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return put(service, path, path.filename().string(), recipe.files, progress);
  for (fs::recursive_directory_iterator entry(path, failure); !failure && entry != fs::recursive_directory_iterator();
       entry.increment(failure)) {
    const std::string name = fs::relative(entry->path(), path, failure).string();
    if (!entry->is_regular_file(failure) || !registry::is_file_name(name)) continue;
    if (const Result<void> done = put(service, entry->path(), name, recipe.files, progress); !done) return done;
  }
  if (failure) return Error{ErrorCode::kIo, fmt::format("cannot read {}: {}", path.string(), failure.message()), ""};
  return {};
}

}  // namespace

Result<ModelRecipe> read_recipe_file(ModelService& service, const std::string& path, const ProgressSink& progress) {
  const Result<std::string> text = read_modelfile_text(path);
  if (!text) return text.error();
  Result<registry::Modelfile> file = registry::parse_modelfile(*text);
  if (!file) return file.error();
  ModelRecipe recipe;
  recipe.settings = std::move(file->settings);
  fs::path folder = path == "-" ? fs::path(".") : fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  for (const std::string& adapter : file->adapters)
    if (const Result<void> done = put_adapter(service, resolved(adapter, folder), recipe.adapters, progress); !done) return done.error();
  for (const std::string& from : file->from) {
    const fs::path place = resolved(from, folder);
    std::error_code ignored;
    if (fs::exists(place, ignored)) {
      if (const Result<void> done = put_all(service, place, recipe, progress); !done) return done.error();
    } else if (from.starts_with('.') || from.starts_with('/') || from.starts_with('~') || from.ends_with(".gguf")) {
      return Error{ErrorCode::kNotFound, fmt::format("FROM {}: there is no such file", from), ""};
    } else if (recipe.from.empty()) {
      recipe.from = from;
    } else {
      return invalid_argument("the Modelfile has several names of models in FROM");
    }
  }
  return recipe;
}

}  // namespace braid::app
