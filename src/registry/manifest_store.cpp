#include "registry/manifest_store.h"

#include "registry/durable_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;

// The names in `folder` that may be a part of a model's.
std::vector<std::string> names_in(const std::string& folder, bool is_host) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (is_host ? !name.starts_with('.') : is_name_part(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Result<ManifestStore> ManifestStore::open(const std::string& folder) {
  if (const Result<void> made = make_folders(folder); !made) return made.error();
  return ManifestStore(folder);
}

std::vector<StoredManifest> ManifestStore::all(std::vector<std::string>& faults) const {
  std::vector<StoredManifest> found;
  for (const std::string& host : names_in(folder_, true))
    for (const std::string& owner : names_in(fmt::format("{}/{}", folder_, host), false))
      for (const std::string& model : names_in(fmt::format("{}/{}/{}", folder_, host, owner), false))
        for (const std::string& tag : names_in(fmt::format("{}/{}/{}/{}", folder_, host, owner, model), false)) {
          const Result<ModelRef> ref = ModelRef::parse(fmt::format("{}/{}/{}:{}", host, owner, model, tag));
          if (!ref) continue;
          Result<StoredManifest> stored = read(*ref);
          if (stored)
            found.push_back(std::move(*stored));
          else if (stored.error().code != ErrorCode::kNotFound)
            faults.push_back(stored.error().message);
        }
  return found;
}

Result<StoredManifest> ManifestStore::read(const ModelRef& ref) const {
  const std::string path = path_of(ref);
  const Result<std::string> text = this->text(ref);
  if (!text) return text.error();
  Result<Manifest> manifest = parse_manifest(*text, ref.text());
  if (!manifest) return manifest.error();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_error("cannot read", path);
  return StoredManifest{ref, std::move(*manifest), digest_of(*text), status.st_mtime};
}

Result<std::string> ManifestStore::text(const ModelRef& ref) const { return read_small_file(path_of(ref), kMostManifestBytes); }

Result<void> ManifestStore::write(const ModelRef& ref, std::string_view text) const {
  const std::string path = path_of(ref);
  if (const Result<void> made = make_folders(fs::path(path).parent_path().string()); !made) return made;
  return write_durably(path, text);
}

Result<void> ManifestStore::remove(const ModelRef& ref) const {
  const std::string path = path_of(ref);
  if (::unlink(path.c_str()) != 0) return system_error("cannot remove", path);
  const std::string parent = fs::path(path).parent_path().string();
  const Result<void> synced = sync_folder(parent);
  for (fs::path folder = parent; folder != folder_ && ::rmdir(folder.c_str()) == 0;) folder = folder.parent_path();
  return synced;
}

}  // namespace braid::registry
