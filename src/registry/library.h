// The models of one data folder and of the folders that are watched: what is there, and how one comes and goes.
//   blobs/       files by their digests
//   manifests/   a file for each model: host/owner/model/tag
//   folders/     for models of several files: links to blobs by their names
//   registry.db  what is known of all of them; made again from the rest where it is missing
#pragma once

#include "braid/model_registry.h"
#include "registry/blob_store.h"
#include "registry/catalogue.h"
#include "registry/manifest_store.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

struct LibraryOptions {
  std::string data_folder;
  std::vector<std::string> model_folders = {};
  bool owns_folders = true;  // false: what others watch stays as it is, and nothing is tidied up
  std::function<void(const std::string& sentence)> warn = [](const std::string&) {};  // any thread
};

// Any thread; several processes may have the same folder open.
class Library {
 public:
  static Result<std::unique_ptr<Library>> open(LibraryOptions options);

  const BlobStore& blobs() const { return blobs_; }
  const ManifestStore& manifests() const { return manifests_; }
  const LibraryOptions& options() const { return options_; }

  // Looks at all manifests and watched folders again.
  Result<void> refresh();

  Result<std::vector<StoredModel>> list(const ModelFilter& filter);
  // By its name, by that without its tag, or by what only one name begins with. kNotFound names the nearest ones.
  Result<CatalogueEntry> find(std::string_view name);
  Result<WeightsFacts> facts(const CatalogueEntry& entry);
  Result<void> note_use(std::string_view name);

  // Makes a model of blobs that are all here: from then on it is there. kNotFound with the first blob that is not.
  Result<void> publish(const ModelRef& ref, std::string_view manifest);
  Result<void> remove(const CatalogueEntry& entry);

 private:
  Library(LibraryOptions options, BlobStore blobs, ManifestStore manifests, Catalogue catalogue, OpenFile lock);

  Result<CatalogueEntry> entry_of(const StoredManifest& stored);
  Result<WeightsFacts> facts_of(const std::string& identity, const std::string& path);
  Result<void> link_files(const StoredManifest& stored);
  Result<void> refresh_manifests();
  Result<void> refresh_folder(const std::string& folder);
  void tidy_up();
  void warn_once(const std::string& sentence);

  LibraryOptions options_;
  BlobStore blobs_;
  ManifestStore manifests_;
  OpenFile lock_;     // of the data folder, among processes: held while models come or go
  std::mutex mutex_;  // of what is below, and of lock_ among threads
  Catalogue catalogue_;
  std::set<std::string> warned_;
};

}  // namespace braid::registry
