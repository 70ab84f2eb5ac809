// Files known by their digest: blobs/sha256-….
#pragma once

#include "braid/model_registry.h"
#include "registry/digest.h"
#include "registry/durable_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

// A blob that is being written. It appears when keep() has found it whole and synced it, and is gone with this object otherwise.
class NewBlob final {
 public:
  NewBlob(OpenFile file, std::string folder) : file_(std::move(file)), folder_(std::move(folder)) {}
  NewBlob(NewBlob&&) = default;
  ~NewBlob();

  const std::string& path() const { return file_.path(); }  // for who writes it otherwise, and then takes adopt()
  Result<void> append(std::string_view bytes);
  // As `wanted`, or as what it turned out to be. kInvalidArgument when it has another digest.
  Result<Digest> keep(const std::optional<Digest>& wanted = std::nullopt);
  // The same for what somebody has written to path().
  Result<Digest> adopt();

 private:
  Result<Digest> publish_as(const Digest& digest);

  OpenFile file_;
  std::string folder_;
  std::uint64_t size_ = 0;
  bool kept_ = false;
  std::unique_ptr<Hasher> hasher_ = std::make_unique<Hasher>();
};

// Any thread, any number of processes.
class BlobStore {
 public:
  // Makes the folder where there is none, and removes what writers that are gone have left.
  static Result<BlobStore> open(const std::string& folder);

  std::string path_of(const Digest& digest) const { return folder_ + "/" + digest.file_name(); }
  std::string partial_path_of(const Digest& digest) const { return path_of(digest) + ".partial"; }  // of one that is being pulled
  std::optional<std::uint64_t> size_of(const Digest& digest) const;                                 // nullopt: it is not here
  Result<NewBlob> begin() const;
  Result<Digest> put(std::string_view bytes) const;
  void remove(const Digest& digest) const;

  // What nobody refers to and is older than that many seconds, half-pulled ones included.
  void remove_all_but(const std::set<Digest>& used, std::int64_t seconds) const;

 private:
  explicit BlobStore(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace braid::registry
