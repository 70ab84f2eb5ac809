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

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

Error system_error(const std::string& path, const char* what, int code) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, what, std::strerror(code)), {}};
}

}  // namespace

Result<std::shared_ptr<const ByteSource>> map_file(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not hang before it is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) return system_error(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(file.value, &status) != 0) return system_error(path, "cannot inspect", errno);
  if (S_ISDIR(status.st_mode)) return Error{ErrorCode::kIo, path + ": is a folder, expected a model file", {}};
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kIo, path + ": is not a regular file", {}};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = nullptr;
  if (size > 0) {  // an empty mapping is refused by the system
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (address == MAP_FAILED) return system_error(path, "cannot map", errno);
  }
  return std::shared_ptr<const ByteSource>(std::make_shared<MappedFile>(address, size, path));
}

std::shared_ptr<const ByteSource> linked_bytes(std::span<const std::byte> bytes, std::string name) {
  return std::make_shared<LinkedBytes>(bytes, std::move(name));
}

std::shared_ptr<const ByteSource> owned_bytes(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<OwnedBytes>(std::move(bytes), std::move(name));
}

}  // namespace braid::files
