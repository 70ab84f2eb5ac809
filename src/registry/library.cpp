#include "registry/library.h"

#include "registry/found_models.h"
#include "registry/json.h"
#include "registry/nearest_names.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnusedBlobSeconds = 24 * 3600;
constexpr std::size_t kMostNames = 3;

// The lock of the data folder, for a while.
class Turn {
 public:
  static Result<Turn> take(const OpenFile& lock) {
    if (const Result<void> locked = lock.lock(); !locked) return locked.error();
    return Turn(&lock);
  }
  Turn(Turn&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (lock_ != nullptr) lock_->unlock();
  }

 private:
  explicit Turn(const OpenFile* lock) : lock_(lock) {}
  const OpenFile* lock_;
};

std::string folder_of(const LibraryOptions& options, const StoredManifest& stored) {
  return fmt::format("{}/folders/{}", options.data_folder, stored.digest.digits());
}

// Where the weights of a model are: a blob, the first part of a split file, or a folder.
Result<std::string> weights_path(const LibraryOptions& options, const BlobStore& blobs, const StoredManifest& stored) {
  if (const Layer* model = stored.manifest.find(layer::kModel)) return blobs.path_of(model->digest);
  std::string first;
  for (const Layer& one : stored.manifest.layers) {
    if (!one.is(layer::kFile)) continue;
    if (one.name == "config.json") return folder_of(options, stored);
    if (one.name.find("-00001-of-") != std::string::npos) first = one.name;
  }
  if (!first.empty()) return folder_of(options, stored) + "/" + first;
  return Error{ErrorCode::kBadFile, fmt::format("{} has no weights in a form that is read here", stored.ref.text()), ""};
}

}  // namespace

Library::Library(LibraryOptions options, BlobStore blobs, ManifestStore manifests, Catalogue catalogue, OpenFile lock)
    : options_(std::move(options)), blobs_(std::move(blobs)), manifests_(std::move(manifests)), lock_(std::move(lock)),
      catalogue_(std::move(catalogue)) {}

Result<std::unique_ptr<Library>> Library::open(LibraryOptions options) {
  const std::string& folder = options.data_folder;
  if (const Result<void> made = make_folders(folder + "/folders"); !made) return made.error();
  Result<OpenFile> lock = OpenFile::read_write(folder + "/lock");
  if (!lock) return lock.error();
  std::unique_ptr<Library> library;
  {
    const Result<Turn> turn = Turn::take(*lock);
    if (!turn) return turn.error();
    Result<BlobStore> blobs = BlobStore::open(folder + "/blobs");
    if (!blobs) return blobs.error();
    Result<ManifestStore> manifests = ManifestStore::open(folder + "/manifests");
    if (!manifests) return manifests.error();
    std::string note;
    Result<Catalogue> catalogue = Catalogue::open(folder + "/registry.db", note);
    if (!note.empty()) options.warn(note);
    if (!catalogue) return catalogue.error();
    Result<OpenFile> own = OpenFile::read_write(folder + "/lock");
    if (!own) return own.error();
    library.reset(new Library(std::move(options), std::move(*blobs), std::move(*manifests), std::move(*catalogue), std::move(*own)));
  }
  if (const Result<void> fresh = library->refresh(); !fresh) return fresh.error();
  return library;
}

void Library::warn_once(const std::string& sentence) {
  if (warned_.insert(sentence).second) options_.warn(sentence);
}

Result<void> Library::refresh() {
  const std::lock_guard guard(mutex_);
  const Result<Turn> turn = Turn::take(lock_);
  if (!turn) return turn.error();
  if (const Result<void> done = refresh_manifests(); !done) return done;
  for (const std::string& folder : options_.model_folders)
    if (const Result<void> done = refresh_folder(folder); !done) return done;
  if (options_.owns_folders) tidy_up();
  return {};
}

Result<void> Library::refresh_manifests() {
  std::vector<std::string> faults;
  const std::vector<StoredManifest> stored = manifests_.all(faults);
  for (const std::string& fault : faults) warn_once(fault);
  Result<std::map<std::string, std::string>> known = catalogue_.digests_from("");
  if (!known) return known.error();
  for (const StoredManifest& one : stored) {
    const auto same = known->find(one.ref.text());
    const bool is_known = same != known->end() && same->second == one.digest.digits();
    if (same != known->end()) known->erase(same);
    if (is_known) continue;
    const Result<CatalogueEntry> entry = entry_of(one);
    if (!entry) {
      warn_once(fmt::format("{} is left out: {}", one.ref.text(), entry.error().message));
      continue;
    }
    if (const Result<void> put = catalogue_.put(*entry); !put) return put;
  }
  for (const auto& [name, digest] : *known)
    if (const Result<void> erased = catalogue_.erase(name); !erased) return erased;
  return {};
}

Result<void> Library::refresh_folder(const std::string& folder) {
  Result<std::map<std::string, std::string>> known = catalogue_.digests_from(folder);
  if (!known) return known.error();
  for (const FoundModel& found : find_models(folder)) {
    const std::string digest = digest_of(found.identity).digits();
    const auto same = known->find(found.name);
    const bool is_known = same != known->end() && same->second == digest;
    if (is_known) {
      known->erase(same);
      continue;
    }
    const Result<std::optional<CatalogueEntry>> other = catalogue_.find(found.name);
    if (!other) return other.error();
    if (*other && (*other)->origin != folder) {
      warn_once(fmt::format("{} is left out: there is another model of the name {}", found.path, found.name));
      continue;
    }
    const Result<WeightsFacts> read = facts_of(found.identity, found.path);
    if (!read) {
      warn_once(fmt::format("{} waits until it is whole: {}", found.path, read.error().message));
      continue;
    }
    if (same != known->end()) known->erase(same);
    CatalogueEntry entry;
    entry.model = {found.name, digest, read->bytes, found.modified, 0, "folder", "", found.path, read->facts};
    entry.identity = found.identity;
    entry.origin = folder;
    entry.files.push_back({"weights", "", found.path, read->bytes});
    if (const Result<void> put = catalogue_.put(entry); !put) return put;
  }
  for (const auto& [name, digest] : *known)
    if (const Result<void> erased = catalogue_.erase(name); !erased) return erased;
  return {};
}

// What nothing refers to any more, and folders that are not watched now.
void Library::tidy_up() {
  std::vector<std::string> ignored_faults;
  std::set<Digest> used;
  std::set<std::string> folders;
  for (const StoredManifest& stored : manifests_.all(ignored_faults)) {
    folders.insert(stored.digest.digits());
    for (const Layer* blob : stored.manifest.blobs()) used.insert(blob->digest);
  }
  if (!ignored_faults.empty()) return;  // whose blobs are not known
  blobs_.remove_all_but(used, kUnusedBlobSeconds);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options_.data_folder + "/folders", ignored))
    if (!folders.contains(entry.path().filename().string())) fs::remove_all(entry.path(), ignored);
  const Result<std::vector<std::string>> origins = catalogue_.origins();
  if (!origins) return;
  for (const std::string& origin : *origins) {
    if (std::ranges::find(options_.model_folders, origin) != options_.model_folders.end()) continue;
    const auto names = catalogue_.digests_from(origin);
    if (!names) return;
    for (const auto& [name, digest] : *names) static_cast<void>(catalogue_.erase(name));
  }
}

Result<WeightsFacts> Library::facts_of(const std::string& identity, const std::string& path) {
  Result<std::optional<WeightsFacts>> known = catalogue_.facts(identity);
  if (!known) return known.error();
  if (*known) return std::move(**known);
  Result<WeightsFacts> read = read_weights(path);
  if (!read) return read.error();
  if (const Result<void> put = catalogue_.put_facts(identity, *read); !put) return put.error();
  return read;
}

// Makes the folder of a model of several files, unless it is there.
Result<void> Library::link_files(const StoredManifest& stored) {
  const std::string folder = folder_of(options_, stored);
  std::error_code failure;
  if (fs::exists(folder, failure)) return {};
  const std::string draft = folder + ".new";
  fs::remove_all(draft, failure);
  bool any = false;
  for (const Layer& one : stored.manifest.layers) {
    if (!one.is(layer::kFile) || one.name.empty()) continue;
    any = true;
    const fs::path link = fs::path(draft) / one.name;
    if (const Result<void> made = make_folders(link.parent_path().string()); !made) return made;
    fs::create_symlink(fs::absolute(blobs_.path_of(one.digest), failure), link, failure);
    if (failure) return Error{ErrorCode::kIo, fmt::format("cannot make the link {}: {}", link.string(), failure.message()), ""};
  }
  return any ? registry::publish(draft, folder) : Result<void>();
}

Result<CatalogueEntry> Library::entry_of(const StoredManifest& stored) {
  for (const Layer* blob : stored.manifest.blobs())
    if (blobs_.size_of(blob->digest) != blob->bytes)
      return Error{ErrorCode::kNotFound, fmt::format("its file {} is not here", blob->digest.text()), ""};
  if (const Result<void> linked = link_files(stored); !linked) return linked.error();
  const Result<std::string> path = weights_path(options_, blobs_, stored);
  if (!path) return path.error();
  CatalogueEntry entry;
  const Layer* weights = stored.manifest.find(layer::kModel);
  entry.identity = weights != nullptr ? weights->digest.text() : "sha256:" + stored.digest.digits();
  const Result<WeightsFacts> read = facts_of(entry.identity, *path);
  if (!read) return read.error();
  const Result<std::string> config = read_small_file(blobs_.path_of(stored.manifest.config.digest), kMostManifestBytes);
  if (!config) return config.error();
  const Result<Value> described = parse_json(*config, "its configuration");
  const std::string parent = described ? text_member(*described, "parent") : "";
  const bool is_created = described && described->find("parent") != nullptr;
  entry.model = {stored.ref.text(),
                 stored.digest.digits(),
                 stored.manifest.bytes(),
                 stored.modified,
                 0,
                 is_created ? "created" : "pulled",
                 parent,
                 *path,
                 read->facts};
  for (const Layer& one : stored.manifest.layers) {
    const std::string kind = one.media_type.substr(one.media_type.rfind('.') + 1);
    entry.files.push_back({kind, one.digest.text(), blobs_.path_of(one.digest), one.bytes});
    if (one.name == std::string(layer::kAdapterFolder).append(kAdapterConfig))
      entry.files.push_back({std::string(layer::kAdapter), one.digest.text(), folder_of(options_, stored) + "/adapter", one.bytes});
    if (one.is(layer::kProjector)) entry.model.facts.able.emplace_back("vision");
    if (!one.is(layer::kTemplate)) continue;
    const Result<std::string> text = read_small_file(blobs_.path_of(one.digest), kMostManifestBytes);
    if (!text) return text.error();
    entry.model.facts.has_template = true;
    add_template_abilities(*text, entry.model.facts);
  }
  return entry;
}

Result<std::vector<StoredModel>> Library::list(const ModelFilter& filter) {
  const std::lock_guard guard(mutex_);
  return catalogue_.list(filter);
}

Result<CatalogueEntry> Library::find(std::string_view name) {
  const std::lock_guard guard(mutex_);
  const Result<ModelRef> ref = ModelRef::parse(name);
  if (ref) {
    Result<std::optional<CatalogueEntry>> exact = catalogue_.find(ref->text());
    if (!exact) return exact.error();
    if (*exact) return std::move(**exact);
  }
  const Result<std::vector<StoredModel>> all = catalogue_.list({});
  if (!all) return all.error();
  std::vector<std::string> names;
  for (const StoredModel& model : *all) names.push_back(model.name);
  const std::vector<std::string> meant = names_meant(name, names);
  if (meant.size() == 1) {
    Result<std::optional<CatalogueEntry>> only = catalogue_.find(meant.front());
    if (!only) return only.error();
    if (*only) return std::move(**only);
  }
  if (!meant.empty())
    return Error{ErrorCode::kNotFound, fmt::format("'{}' may be any of {}: say which", name, fmt::join(meant, ", ")), "model"};
  std::string sentence = fmt::format("model '{}' not found", name);
  if (const auto nearest = nearest_names(name, names, kMostNames); !nearest.empty())
    sentence += fmt::format("; there is {}", fmt::join(nearest, ", "));
  return Error{ErrorCode::kNotFound, sentence, "model"};
}

Result<WeightsFacts> Library::facts(const CatalogueEntry& entry) {
  const std::lock_guard guard(mutex_);
  return facts_of(entry.identity, entry.model.path);
}

Result<void> Library::note_use(std::string_view name) {
  const std::lock_guard guard(mutex_);
  return catalogue_.note_use(name, std::time(nullptr));
}

Result<void> Library::publish(const ModelRef& ref, std::string_view text) {
  Result<Manifest> manifest = parse_manifest(text, ref.text());
  if (!manifest) return manifest.error();
  const std::lock_guard guard(mutex_);
  const Result<Turn> turn = Turn::take(lock_);
  if (!turn) return turn.error();
  const Result<std::optional<CatalogueEntry>> other = catalogue_.find(ref.text());
  if (!other) return other.error();
  if (*other && !(*other)->origin.empty())
    return invalid_argument(fmt::format("{} is the file {} of a watched folder: choose another name", ref.text(), (*other)->model.path),
                            "model");
  const StoredManifest stored{ref, std::move(*manifest), digest_of(text), std::time(nullptr)};
  const Result<CatalogueEntry> entry = entry_of(stored);  // before it can be seen: it is whole
  if (!entry) return entry.error();
  if (const Result<void> written = manifests_.write(ref, text); !written) return written;
  return catalogue_.put(*entry);
}

Result<void> Library::remove(const CatalogueEntry& entry) {
  const std::lock_guard guard(mutex_);
  const Result<Turn> turn = Turn::take(lock_);
  if (!turn) return turn.error();
  const Result<ModelRef> ref = ModelRef::parse(entry.model.name);
  if (!ref) return ref.error();
  if (!entry.origin.empty())
    return invalid_argument(fmt::format("{} is the file {} of a watched folder: remove it there", entry.model.name, entry.model.path),
                            "model");
  const Result<StoredManifest> stored = manifests_.read(*ref);
  if (!stored) return stored.error();
  if (const Result<void> removed = manifests_.remove(*ref); !removed) return removed;
  if (const Result<void> erased = catalogue_.erase(entry.model.name); !erased) return erased;
  std::vector<std::string> faults;
  std::set<Digest> used;
  bool folder_used = false;
  for (const StoredManifest& other : manifests_.all(faults)) {
    folder_used = folder_used || other.digest == stored->digest;
    for (const Layer* blob : other.manifest.blobs()) used.insert(blob->digest);
  }
  if (!faults.empty()) return {};  // whose blobs are not known
  std::error_code ignored;
  if (!folder_used) fs::remove_all(folder_of(options_, *stored), ignored);
  for (const Layer* blob : stored->manifest.blobs())
    if (!used.contains(blob->digest)) blobs_.remove(blob->digest);
  return {};
}

}  // namespace braid::registry
