// The folder of a disk tier: segment files, and a lock so that only one process writes to them.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::store {

// An open file, closed with its last owner: a transfer keeps the file that it needs even when it is removed meanwhile.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

using SharedFile = std::shared_ptr<const OpenFile>;

// Immutable: any thread. Other files in the folder are left alone.
class Directory {
 public:
  // Makes the folder if need be and locks it until destruction or the death of the process.
  // kIo: it cannot be made or written to, or another process has it. `predecessors` is the lock of a process whose place this one takes,
  // passed on by it; used if it is this folder's. It stays taken until both have let it go.
  static Result<Directory> open(const std::string& path, SharedFile predecessors = nullptr);

  // Numbers of the segments that lie here, ascending.
  Result<std::vector<std::uint32_t>> segments() const;
  // That they take; nullopt where the system does not tell.
  std::optional<std::uint64_t> bytes() const;

  // Each returns null and an errno when the system refuses.
  SharedFile open_segment(std::uint32_t number, int& error) const;
  SharedFile create_segment(std::uint32_t number, int& error) const;
  void remove_segment(std::uint32_t number) const;

  const std::string& path() const { return path_; }
  const SharedFile& lock() const { return lock_; }

 private:
  Directory(std::string path, SharedFile lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string segment_path(std::uint32_t number) const;

  std::string path_;
  SharedFile lock_;
};

}  // namespace braid::store
