// mimalloc, built from C as distributions do, ends the process where operator new should throw. These throw; the memory is its own, as is
// all that std::malloc gives here. Its other forms of new and its delete stay.
#include <cstdlib>
#include <new>

namespace {

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate(std::size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<std::size_t>(alignment);
  return or_throw(std::aligned_alloc(bytes, (size + bytes - 1) / bytes * bytes));
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new[](std::size_t size) { return or_throw(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
