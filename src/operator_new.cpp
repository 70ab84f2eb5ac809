// mimalloc, built from C as distributions do, ends the process where operator new should throw. These throw; the memory is its own, as is
// all that std::malloc gives here. Its other forms of new and its delete stay.
#include <app/reserve.h>
#include <mimalloc.h>

#include <cstdlib>
#include <new>

namespace {

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate(std::size_t size, std::align_val_t alignment) { return or_throw(mi_malloc_aligned(size, static_cast<std::size_t>(alignment))); }

constinit braid::app::Reserve reserve([](std::size_t alignment, std::size_t bytes) { return mi_malloc_aligned(bytes, alignment); });
const bool is_filled = (reserve.fill(), true);

}  // namespace

void* operator new(std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new[](std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }

// Asio's. The C library's and mimalloc's give way to it in this program.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return reserve.allocate(alignment, size); }
