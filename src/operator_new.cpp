// mimalloc, built from C as distributions do, ends the process where operator new should throw. These throw; the memory is its own, as is
// all that std::malloc gives here. Its other forms of new and its delete stay.
#include <app/reserve.h>
#include <braid/last_memory.h>
#include <mimalloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constinit braid::app::Reserve reserve([](std::size_t alignment, std::size_t bytes) { return mi_malloc_aligned(bytes, alignment); });
const bool is_filled = (reserve.fill(), true);

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
