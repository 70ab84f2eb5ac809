// --kv-verify: what a hit would have given is computed and compared.
#pragma once

#include <string>

namespace braid::sched {

// The cache holds other keys or values than those just computed: whatever the server answered from it may be wrong. Says so on
// stderr and aborts the process.
[[noreturn]] void abort_on_difference(const std::string& what);

}  // namespace braid::sched
