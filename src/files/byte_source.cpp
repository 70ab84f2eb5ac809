#include "files/byte_source.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace braid::files {
namespace {

// Whole pages inside the range only: a page at the edge may hold a neighbour.
void drop_whole_pages(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) + offset;
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = (first + size) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

class MappedFile final : public ByteSource {
 public:
  MappedFile(void* address, std::size_t size, std::string name) : address_(address), size_(size), name_(std::move(name)) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() override {
    if (size_ > 0) ::munmap(address_, size_);
  }

  std::span<const std::byte> bytes() const override { return {static_cast<const std::byte*>(address_), size_}; }
  const std::string& name() const override { return name_; }

  void drop_pages(std::size_t offset, std::size_t size) const override { drop_whole_pages(bytes(), offset, size); }

 private:
  void* address_;
  std::size_t size_;
  std::string name_;
};

class LinkedBytes final : public ByteSource {
 public:
  LinkedBytes(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }
  const std::string& name() const override { return name_; }
  void drop_pages(std::size_t offset, std::size_t size) const override { drop_whole_pages(bytes_, offset, size); }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

class OwnedBytes final : public ByteSource {
 public:
  OwnedBytes(std::vector<std::byte> bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }
  const std::string& name() const override { return name_; }
  void drop_pages(std::size_t, std::size_t) const override {}  // nothing could bring them back

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

Error system_error(const std::string& path, const char* what, int code) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(code)), {}};
}

// Open for reading.
struct RegularFile {
  RegularFile(int opened, std::size_t its_size) : descriptor(opened), size(its_size) {}
  ~RegularFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  RegularFile(RegularFile&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)), size(other.size) {}
  RegularFile& operator=(RegularFile&&) = delete;

  static Result<RegularFile> open(const std::string& path) {
    // O_NONBLOCK: opening a named pipe must not hang before it is refused below.
    RegularFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), 0);
    if (file.descriptor < 0) return system_error(path, "cannot open", errno);
    struct stat status {};
    if (::fstat(file.descriptor, &status) != 0) return system_error(path, "cannot inspect", errno);
    if (S_ISDIR(status.st_mode)) return Error{ErrorCode::kIo, path + ": is a folder, expected a file", {}};
    if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kIo, path + ": is not a regular file", {}};
    file.size = static_cast<std::size_t>(status.st_size);
    return file;
  }

  int descriptor;
  std::size_t size;
};

}  // namespace

Result<std::shared_ptr<const ByteSource>> map_file(const std::string& path) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file) return file.error();
  const std::size_t size = file->size;
  void* address = nullptr;
  if (size > 0) {  // an empty mapping is refused by the system
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (address == MAP_FAILED) return system_error(path, "cannot map", errno);
  }
  return std::shared_ptr<const ByteSource>(std::make_shared<MappedFile>(address, size, path));
}

Result<std::shared_ptr<const ByteSource>> copy_file(const std::string& path) {
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file) return file.error();
  if (file->size > kMostCopyBytes)
    return Error{ErrorCode::kIo, fmt::format("{}: has {} bytes, expected at most {}", path, file->size, kMostCopyBytes), {}};
  std::vector<std::byte> bytes(file->size);
  for (std::size_t done = 0; done < bytes.size();) {
    const ::ssize_t count = ::pread(file->descriptor, bytes.data() + done, bytes.size() - done, static_cast<::off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "cannot read", errno);
    if (count == 0) return Error{ErrorCode::kIo, path + ": ended before its size", {}};
    done += static_cast<std::size_t>(count);
  }
  return owned_bytes(std::move(bytes), path);
}

std::shared_ptr<const ByteSource> linked_bytes(std::span<const std::byte> bytes, std::string name) {
  return std::make_shared<LinkedBytes>(bytes, std::move(name));
}

std::shared_ptr<const ByteSource> owned_bytes(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<OwnedBytes>(std::move(bytes), std::move(name));
}

}  // namespace braid::files
