#include "registry/durable_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace braid::registry {
namespace {

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace

Error system_error(std::string_view what, const std::string& path) {
  const int number = errno;
  if (number == ENOSPC || number == EDQUOT)
    return {ErrorCode::kIo, fmt::format("{} {}: the disk is full; make room, or name another folder with --data-dir", what, path), ""};
  return {number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, fmt::format("{} {}: {}", what, path, std::strerror(number)), ""};
}

Result<OpenFile> OpenFile::read(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error("cannot read", path);
  return OpenFile(file, path);
}

Result<OpenFile> OpenFile::read_write(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return system_error("cannot write", path);
  return OpenFile(file, path);
}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

OpenFile::~OpenFile() {
  if (file_ >= 0) ::close(file_);
}

Result<std::uint64_t> OpenFile::size() const {
  struct stat status {};
  if (::fstat(file_, &status) != 0) return system_error("cannot read", path_);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::uint64_t> OpenFile::node() const {
  struct stat status {};
  if (::fstat(file_, &status) != 0) return system_error("cannot read", path_);
  return status.st_ino;
}

Result<std::size_t> OpenFile::read_at(std::span<char> room, std::uint64_t offset) const {
  for (;;) {
    const ssize_t size = ::pread(file_, room.data(), room.size(), static_cast<off_t>(offset));
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno != EINTR) return system_error("cannot read", path_);
  }
}

Result<void> OpenFile::write_at(std::string_view bytes, std::uint64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t size = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error("cannot write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(size));
    offset += static_cast<std::uint64_t>(size);
  }
  return {};
}

Result<void> OpenFile::resize(std::uint64_t bytes) const {
  if (::ftruncate(file_, static_cast<off_t>(bytes)) != 0) return system_error("cannot write", path_);
  return {};
}

Result<void> OpenFile::sync() const {
  if (::fsync(file_) != 0) return system_error("cannot write", path_);
  return {};
}

Result<void> OpenFile::lock() const {
  while (::flock(file_, LOCK_EX) != 0)
    if (errno != EINTR) return system_error("cannot lock", path_);
  return {};
}

bool OpenFile::try_lock() const { return ::flock(file_, LOCK_EX | LOCK_NB) == 0; }

void OpenFile::unlock() const { ::flock(file_, LOCK_UN); }

Result<std::string> read_small_file(const std::string& path, std::size_t most) {
  const Result<OpenFile> file = OpenFile::read(path);
  if (!file) return file.error();
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const Result<std::size_t> more = file->read_at({text.data() + size, text.size() - size}, size);
    if (!more) return more.error();
    if (*more == 0) break;
    size += *more;
  }
  if (size > most) return Error{ErrorCode::kBadFile, fmt::format("{} is larger than {} bytes", path, most), ""};
  text.resize(size);
  return text;
}

Result<void> write_durably(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> count{0};
  const std::string draft = fmt::format("{}/.new-{}-{}", folder_of(path), ::getpid(), count++);
  const auto write = [&]() -> Result<void> {
    const Result<OpenFile> file = OpenFile::read_write(draft);
    if (!file) return file.error();
    if (const Result<void> written = file->write_at(bytes, 0); !written) return written;
    return file->sync();
  };
  Result<void> done = write();
  if (done) done = publish(draft, path);
  if (!done) ::unlink(draft.c_str());
  return done;
}

Result<void> publish(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return system_error("cannot write", to);
  return sync_folder(folder_of(to));
}

Result<void> make_folders(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (!failure) return {};
  errno = failure.value();
  return system_error("cannot make the folder", path);
}

Result<void> sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return system_error("cannot read", path);
  const bool synced = ::fsync(folder) == 0 || errno == EINVAL;  // some file systems have no such thing
  const Error failure = system_error("cannot write", path);
  ::close(folder);
  if (!synced) return failure;
  return {};
}

}  // namespace braid::registry
