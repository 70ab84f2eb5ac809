#include "files/mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::files {

Result<Mapping> Mapping::reserve(std::size_t bytes, std::string_view purpose, HugePages pages) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  constexpr int kHugePageFlags = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
  Mapping mapping;
  if (bytes == 0) return mapping;
  const bool only_huge = pages == HugePages::kExplicit;
  if (only_huge) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  // Explicit pages are reserved here: running out of them at the first touch would be a SIGBUS.
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (only_huge ? kHugePageFlags : MAP_NORESERVE), -1, 0);
  if (address == MAP_FAILED && only_huge)
    return Error{ErrorCode::kIo,
                 fmt::format("cannot reserve {} huge pages of 2 MiB for the {}: {}; raise vm.nr_hugepages, or use "
                             "--huge-pages transparent",
                             bytes / kHugePage, purpose, std::strerror(errno)),
                 {}};
  if (address == MAP_FAILED)
    return Error{ErrorCode::kIo, fmt::format("cannot reserve {} bytes for the {}: {}", bytes, purpose, std::strerror(errno)), {}};
  if (!only_huge) ::madvise(address, bytes, pages == HugePages::kOff ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  mapping.data_ = static_cast<std::byte*>(address);
  mapping.size_ = bytes;
  mapping.page_ = only_huge ? kHugePage : static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), page_(other.page_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(page_, other.page_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void Mapping::discard(std::size_t begin, std::size_t end) const {
  if (page_ == 0) return;
  begin = (begin + page_ - 1) / page_ * page_;
  end = std::min(end, size_) / page_ * page_;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

std::size_t Mapping::resident() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present((size_ + page - 1) / page);
  if (present.empty() || ::mincore(data_, size_, present.data()) != 0) return size_;
  return page * static_cast<std::size_t>(std::ranges::count_if(present, [](unsigned char flags) { return (flags & 1U) != 0; }));
}

void Mapping::prefault(std::size_t begin, std::size_t end) const {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14; Debian 12's headers may lack it
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  end = std::min(end, size_);
  if (begin >= end || ::madvise(data_ + begin, end - begin, kPopulateWrite) == 0) return;
  for (std::size_t offset = begin; offset < end; offset += page) {
    auto* byte = reinterpret_cast<volatile std::uint8_t*>(data_ + offset);
    *byte = *byte;
  }
}

}  // namespace braid::files
