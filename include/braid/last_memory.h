// Who may take the memory that was set aside for when there is none.
#pragma once

namespace braid {

// While one lives, allocations of its thread that would fail are served by what is set aside (app/reserve.h), as long as that lasts. For work
// that nobody can be told has failed: taking in what a step has computed, ending a sequence. What belongs to one request goes without.
// Costs nothing while there is memory but counting.
class LastMemory {
 public:
  LastMemory() noexcept { ++holders_; }
  ~LastMemory() { --holders_; }
  LastMemory(const LastMemory&) = delete;
  LastMemory& operator=(const LastMemory&) = delete;

  static bool is_held() noexcept { return holders_ > 0; }

 private:
  static inline constinit thread_local int holders_ = 0;
};

}  // namespace braid
