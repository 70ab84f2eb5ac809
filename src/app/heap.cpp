#include "app/heap.h"

#include <cstdint>
#include <sys/mman.h>
#include <sys/resource.h>

// mimalloc's, which only the program is linked with.
extern "C" [[gnu::weak]] bool mi_manage_os_memory(void* start, std::size_t size, bool is_committed, bool is_large, bool is_zero,
                                                  int numa_node) noexcept;

namespace braid::app {
namespace {

constexpr std::size_t kAlignment = std::size_t{64} << 20;  // of mimalloc's arenas, at most

bool is_limited(decltype(RLIMIT_AS) what) {
  rlimit limit{};
  return ::getrlimit(what, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

bool grow_in_huge_pages(std::size_t bytes) {
  if (mi_manage_os_memory == nullptr || is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) return false;
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
