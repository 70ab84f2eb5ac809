// mimalloc, built from C as distributions do, ends the process where operator new should throw. These throw; the memory is its own, as is
// all that std::malloc gives here. Its other forms of new and its delete stay.
#include <cstddef>
#include <cstdlib>
#include <mimalloc.h>
#include <new>

namespace {

// Pages that become free are given back to the system this late: streams that come and go would fault them in again at once, and giving
// them back stops the compute threads to clear their TLBs. The variable MIMALLOC_DECOMMIT_DELAY (from 2.1 on MIMALLOC_PURGE_DELAY) overrides.
constexpr long kFreePageMilliseconds = 2000;
#if MI_MALLOC_VERSION >= 210
constexpr mi_option_t kFreePageDelay = mi_option_purge_delay;
#else
constexpr mi_option_t kFreePageDelay = mi_option_decommit_delay;
#endif
const bool is_delayed = (mi_option_set_default(kFreePageDelay, kFreePageMilliseconds), true);

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new[](std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<std::size_t>(alignment)));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<std::size_t>(alignment)));
}
