#include "registry/found_models.h"

#include "files/part_name.h"
#include "registry/model_ref.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;
constexpr int kDepth = 4;

struct Entry {
  fs::path path;
  struct stat status {};
};

std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code ignored;
  for (const auto& found : fs::directory_iterator(folder, ignored)) {
    Entry entry{found.path()};
    if (found.path().filename().string().starts_with('.') || ::stat(found.path().c_str(), &entry.status) != 0) continue;
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

std::int64_t modified_of(const struct stat& status) { return status.st_mtim.tv_sec; }

std::string identity_of(const Entry& entry) {
  const struct stat& status = entry.status;
  return fmt::format("{}|{}|{}.{}|{};", entry.path.string(), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino);
}

bool is_part_of(std::string_view stem, const fs::path& path) {
  const std::string name = path.stem().string();
  const auto part = files::part_name(name);
  return path.extension() == ".gguf" && part && part->stem == stem;
}

class Search {
 public:
  explicit Search(fs::path root) : root_(std::move(root)) {}

  void look_into(const fs::path& folder, int depth) {
    const std::vector<Entry> entries = entries_of(folder);
    const auto has = [&](auto is) { return std::ranges::any_of(entries, is); };
    const bool is_model = has([](const Entry& entry) { return entry.path.filename() == "config.json"; }) &&
                          has([](const Entry& entry) { return entry.path.extension() == ".safetensors"; });
    if (is_model) return add_folder(folder, entries);
    for (const Entry& entry : entries) {
      if (S_ISDIR(entry.status.st_mode) && depth > 1) look_into(entry.path, depth - 1);
      if (S_ISREG(entry.status.st_mode) && entry.path.extension() == ".gguf") add_file(entry, entries);
    }
  }

  std::vector<FoundModel> take() { return std::move(found_); }

 private:
  void add(const std::string& stem, FoundModel model) {
    ModelRef ref;
    ref.model = name_part_from(stem);
    if (const fs::path parent = fs::path(model.path).parent_path(); parent != root_) ref.owner = name_part_from(parent.filename().string());
    model.name = ref.text();
    if (names_.insert(model.name).second) found_.push_back(std::move(model));
  }

  void add_folder(const fs::path& folder, const std::vector<Entry>& entries) {
    FoundModel model;
    model.path = folder.string();
    for (const Entry& entry : entries) {
      model.identity += identity_of(entry);
      model.modified = std::max(model.modified, modified_of(entry.status));
    }
    add(folder.filename().string(), std::move(model));
  }

  void add_file(const Entry& entry, const std::vector<Entry>& entries) {
    const std::string name = entry.path.stem().string();
    const auto part = files::part_name(name);
    if (part && part->number != 1) return;
    const std::string stem(part ? part->stem : name);
    FoundModel model;
    model.path = entry.path.string();
    for (const Entry& other : entries) {
      if (other.path != entry.path && !(part && is_part_of(stem, other.path))) continue;
      model.identity += identity_of(other);
      model.modified = std::max(model.modified, modified_of(other.status));
    }
    add(stem, std::move(model));
  }

  const fs::path root_;
  std::vector<FoundModel> found_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<FoundModel> find_models(const std::string& folder) {
  const fs::path root = folder.size() > 1 && folder.ends_with('/') ? fs::path(folder).parent_path() : fs::path(folder);
  Search search(root);
  search.look_into(root, kDepth);
  return search.take();
}

}  // namespace braid::registry
