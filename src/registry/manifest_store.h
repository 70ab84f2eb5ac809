// The manifests of this machine's models, a file each: a model is here exactly when its file is.
#pragma once

#include "braid/result.h"
#include "registry/manifest.h"
#include "registry/model_ref.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

struct StoredManifest {
  ModelRef ref;
  Manifest manifest;
  Digest digest;          // of the file's bytes
  std::int64_t modified;  // Unix seconds
};

// Any thread, any number of processes.
class ManifestStore {
 public:
  static Result<ManifestStore> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  // Those that can be read, and a sentence about each other one.
  std::vector<StoredManifest> all(std::vector<std::string>& faults) const;
  Result<StoredManifest> read(const ModelRef& ref) const;  // kNotFound: there is none
  Result<std::string> text(const ModelRef& ref) const;     // the file's bytes
  Result<void> write(const ModelRef& ref, std::string_view text) const;
  Result<void> remove(const ModelRef& ref) const;

 private:
  explicit ManifestStore(std::string folder) : folder_(std::move(folder)) {}
  std::string path_of(const ModelRef& ref) const { return folder_ + "/" + ref.path(); }
  std::string folder_;
};

}  // namespace braid::registry
