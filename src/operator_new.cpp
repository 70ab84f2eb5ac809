// mimalloc, built from C as distributions do, ends the process where operator new should throw. These throw; the memory is its own, as is
// all that std::malloc gives here. Its other forms of new and its delete stay.
#include "app/reserve.h"
#include "braid/last_memory.h"

#include <cstddef>
#include <cstdlib>
#include <mimalloc.h>
#include <new>

namespace {

constinit braid::app::Reserve reserve([](std::size_t alignment, std::size_t bytes) { return mi_malloc_aligned(bytes, alignment); });
const bool is_filled = (reserve.fill(), true);

// Pages that become free are given back to the system this late: streams that come and go would fault them in again at once, and giving
// them back stops the compute threads to clear their TLBs. The variable MIMALLOC_DECOMMIT_DELAY (from 2.1 on MIMALLOC_PURGE_DELAY) overrides.
constexpr long kFreePageMilliseconds = 2000;
#if MI_MALLOC_VERSION >= 210
constexpr mi_option_t kFreePageDelay = mi_option_purge_delay;
#else
constexpr mi_option_t kFreePageDelay = mi_option_decommit_delay;
#endif
const bool is_delayed = (mi_option_set_default(kFreePageDelay, kFreePageMilliseconds), true);

void* last_memory(std::size_t size, std::size_t alignment) {
  void* const memory = braid::LastMemory::is_held() ? reserve.take(alignment, size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate(std::size_t size) {
  void* const memory = std::malloc(size);
  return memory != nullptr ? memory : last_memory(size, alignof(std::max_align_t));
}

void* allocate(std::size_t size, std::align_val_t alignment) {
  void* const memory = mi_malloc_aligned(size, static_cast<std::size_t>(alignment));
  return memory != nullptr ? memory : last_memory(size, static_cast<std::size_t>(alignment));
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }

// Asio's. The C library's and mimalloc's give way to it in this program.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return reserve.allocate(alignment, size); }
