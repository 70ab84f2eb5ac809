// The memory that the program's allocator gives to whoever asks for some.
#pragma once

#include <cstddef>

namespace braid::app {

// Lets the next `bytes` that the heap grows by lie in pages of 2 MiB where the system has them: thousands of streams' memory, a line of
// each of which is touched at every token, needs more pages of 4 KiB than a processor keeps addresses of. What the heap has already stays
// as it is, so that a server of few streams takes no more than before; memory that becomes free is given back as before. Takes address
// space only. False where that is limited (ulimit -v, -d), or the allocator is not mimalloc 2. Any thread, once.
bool grow_in_huge_pages(std::size_t bytes);

}  // namespace braid::app
