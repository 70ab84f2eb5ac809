#include "app/heap.h"

#include <cstdint>
#include <sys/mman.h>
#include <sys/resource.h>

// mimalloc's, which only the program is linked with.
extern "C" [[gnu::weak]] bool mi_manage_os_memory(void* start, std::size_t size, bool is_committed, bool is_large, bool is_zero,
                                                  int numa_node) noexcept;

extern "C" [[gnu::weak]] int mi_version() noexcept;

namespace braid::app {
namespace {

constexpr std::size_t kAlignment = std::size_t{64} << 20;  // of mimalloc's arenas, at most

bool is_limited(decltype(RLIMIT_AS) what) {
  rlimit limit{};
  return ::getrlimit(what, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

// mimalloc 3 makes an arena of its own at the first allocation, and takes from that one before any other.
bool fills_what_it_is_given() { return mi_version() < 300; }

}  // namespace

bool grow_in_huge_pages(std::size_t bytes) {
  if (mi_manage_os_memory == nullptr || !fills_what_it_is_given() || is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) return false;
  // Writable from the beginning: mimalloc does not look whether it can make a part of an arena so.
  void* const room = ::mmap(nullptr, bytes + kAlignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  const auto start = (reinterpret_cast<std::uintptr_t>(room) + kAlignment - 1) / kAlignment * kAlignment;
  ::madvise(reinterpret_cast<void*>(start), bytes, MADV_HUGEPAGE);
  if (mi_manage_os_memory(reinterpret_cast<void*>(start), bytes, false, false, true, -1)) return true;
  ::munmap(room, bytes + kAlignment);
  return false;
}

}  // namespace braid::app
