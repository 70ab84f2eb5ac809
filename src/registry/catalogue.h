// The registry's tables: what is known of each model, so that a list opens no file of weights. Made from the files whenever it is missing.
#pragma once

#include "braid/model_registry.h"
#include "registry/database.h"
#include "registry/weights_facts.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

struct CatalogueFile {
  std::string kind;    // the layer's, or "weights" of a folder's model
  std::string digest;  // "sha256:…", or empty: not known
  std::string path;
  std::uint64_t bytes = 0;
};

struct CatalogueEntry {
  StoredModel model;
  std::string identity;  // of the bytes of its weights: a digest, or path, size and times
  std::string origin;    // a folder that is watched, or empty: it has a manifest
  std::vector<CatalogueFile> files;
};

// One thread at a time; each call is a transaction of its own.
class Catalogue {
 public:
  // A damaged file is put aside and a new one begun, with a sentence in `note`. kUnsupported: a newer program's.
  static Result<Catalogue> open(const std::string& path, std::string& note);

  Result<std::vector<StoredModel>> list(const ModelFilter& filter);
  Result<std::optional<CatalogueEntry>> find(std::string_view name);
  // Of each model its digest, of those from manifests (origin "") or from that folder.
  Result<std::map<std::string, std::string>> digests_from(std::string_view origin);
  Result<std::vector<std::string>> origins();  // the folders

  Result<void> put(const CatalogueEntry& entry);
  Result<void> erase(std::string_view name);

  Result<std::optional<WeightsFacts>> facts(std::string_view identity);
  Result<void> put_facts(std::string_view identity, const WeightsFacts& read);

  Result<void> note_use(std::string_view name, std::int64_t unix_seconds);

 private:
  explicit Catalogue(Database database) : database_(std::move(database)) {}
  Result<void> make_tables();
  Result<std::vector<std::string>> abilities(std::string_view name);
  Result<void> put_parts(const CatalogueEntry& entry);

  Database database_;
};

}  // namespace braid::registry
