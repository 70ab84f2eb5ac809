// The end of a process that has no memory for what nobody can be told has failed.
#pragma once

namespace braid::app {

inline constexpr int kExhaustedExitCode = 71;  // EX_OSERR

// From here on an allocation that fails where its exception cannot be caught (half a step's results, a wait that begins, a thread of the
// disk tier) ends the process with a sentence and that code, so that a service manager starts it anew. What belongs to one request is
// caught, and costs that. Other exceptions that nobody catches end it as before. Once, before other threads.
void end_when_exhausted();

[[noreturn]] void end_exhausted() noexcept;

}  // namespace braid::app
