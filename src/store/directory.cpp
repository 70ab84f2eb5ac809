#include "store/directory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace braid::store {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";
constexpr std::size_t kDigits = 8;

// The number of a name such as "0000001f.kv"; 0 for any other.
std::uint32_t number_of(std::string_view name) {
  if (name.size() != kDigits + kSuffix.size() || !name.ends_with(kSuffix)) return 0;
  std::uint32_t number = 0;
  for (const char digit : name.substr(0, kDigits)) {
    const std::size_t value = std::string_view("0123456789abcdef").find(digit);
    if (value == std::string_view::npos) return 0;
    number = number * 16 + static_cast<std::uint32_t>(value);
  }
  return number;
}

SharedFile open_file(const std::string& path, int flags, int& error) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0600);  // keys and values tell what was said
  error = descriptor < 0 ? errno : 0;
  return descriptor < 0 ? nullptr : std::make_shared<const OpenFile>(descriptor);
}

bool is_same_file(int a, int b) {
  struct stat one {
  }, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

OpenFile::~OpenFile() { ::close(descriptor_); }

Result<Directory> Directory::open(const std::string& path, SharedFile predecessors) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) return Error{ErrorCode::kIo, fmt::format("cannot make the folder {}: {}", path, failure.message()), {}};
  int error = 0;
  SharedFile lock = open_file(path + "/lock", O_RDWR | O_CREAT, error);
  if (lock == nullptr) return Error{ErrorCode::kIo, fmt::format("cannot write to the folder {}: {}", path, std::strerror(error)), {}};
  if (predecessors != nullptr && is_same_file(lock->descriptor(), predecessors->descriptor()))
    return Directory(path, std::move(predecessors));
  if (::flock(lock->descriptor(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kIo, fmt::format("the folder {} is in use by another process", path), {}};
  return Directory(path, std::move(lock));
}

Result<std::vector<std::uint32_t>> Directory::segments() const {
  std::vector<std::uint32_t> numbers;
  std::error_code failure;
  for (fs::directory_iterator at(path_, failure), end; !failure && at != end; at.increment(failure))
    if (const std::uint32_t number = number_of(at->path().filename().string()); number != 0) numbers.push_back(number);
  if (failure) return Error{ErrorCode::kIo, fmt::format("cannot list the folder {}: {}", path_, failure.message()), {}};
  std::ranges::sort(numbers);
  return numbers;
}

std::optional<std::uint64_t> Directory::bytes() const {
  std::uint64_t bytes = 0;
  std::error_code failure;
  for (fs::directory_iterator at(path_, failure), end; !failure && at != end; at.increment(failure)) {
    if (number_of(at->path().filename().string()) == 0) continue;
    std::error_code gone;
    const std::uintmax_t size = at->file_size(gone);
    if (!gone) bytes += size;
  }
  return failure ? std::nullopt : std::optional(bytes);
}

SharedFile Directory::open_segment(std::uint32_t number, int& error) const { return open_file(segment_path(number), O_RDONLY, error); }

SharedFile Directory::create_segment(std::uint32_t number, int& error) const {
  return open_file(segment_path(number), O_RDWR | O_CREAT | O_EXCL, error);
}

void Directory::remove_segment(std::uint32_t number) const { ::unlink(segment_path(number).c_str()); }

std::string Directory::segment_path(std::uint32_t number) const { return fmt::format("{}/{:08x}{}", path_, number, kSuffix); }

}  // namespace braid::store
