// Files that are there whole or not at all, also after a crash.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace braid::registry {

// What a system call on `path` left in errno, as a sentence: a full disk says what to do.
Error system_error(std::string_view what, const std::string& path);

// A descriptor. Reading and writing at offsets may happen on several threads.
class OpenFile {
 public:
  static Result<OpenFile> read(const std::string& path);
  static Result<OpenFile> read_write(const std::string& path);  // made where there is none

  OpenFile(OpenFile&& other) noexcept : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  const std::string& path() const { return path_; }
  Result<std::uint64_t> size() const;
  Result<std::uint64_t> node() const;                                             // its number in its file system
  Result<std::size_t> read_at(std::span<char> room, std::uint64_t offset) const;  // 0: the end
  Result<void> write_at(std::string_view bytes, std::uint64_t offset) const;
  Result<void> resize(std::uint64_t bytes) const;
  Result<void> sync() const;

  // An advisory lock of the file that goes with the descriptor. Waits for it, or says whether it was free.
  Result<void> lock() const;
  bool try_lock() const;
  void unlock() const;

 private:
  OpenFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  int file_;
  std::string path_;
};

Result<std::string> read_small_file(const std::string& path, std::size_t most);

// In place of what stood there, if anything: a reader sees the old bytes or the new ones.
Result<void> write_durably(const std::string& path, std::string_view bytes);

// Renames a file whose bytes are on the disk, and has the folder on the disk too.
Result<void> publish(const std::string& from, const std::string& to);

Result<void> make_folders(const std::string& path);
Result<void> sync_folder(const std::string& path);

}  // namespace braid::registry
