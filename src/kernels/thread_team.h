// A fixed team of threads inside the compute strand. The strand's own thread is member 0 and takes part in every loop.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace braid::kernels {

class ThreadTeam {
 public:
  // `threads` counts the calling thread; 1 starts none. `cpus`: empty, or a processor for each member, to which it is pinned; member 0
  // by pin_strand(). A member whose processor has been taken from the process meanwhile stays where it may be.
  explicit ThreadTeam(int threads, std::vector<int> cpus = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  // Pins the calling thread as member 0 where the team is pinned: once, on the strand, since loading uses the team on another thread.
  void pin_strand();

  // Calls body(begin, end, member) until [0, count) is covered, in chunks of at most `chunk`, claimed by fetch_add: of the
  // member's own stretch first, then of the others'. Returns when all are done. `member` in [0, size()) picks per-thread scratch. Only the strand's thread calls it; bodies do not nest it.
  template <class Body>
  void for_chunks(std::int64_t count, std::int64_t chunk, Body&& body) {
    run(count, chunk, [](void* context, std::int64_t begin, std::int64_t end, int member) {
      (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end, member);
    }, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, std::int64_t begin, std::int64_t end, int member);
  void run(std::int64_t count, std::int64_t chunk, Call call, void* context);

  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// The processors of the calling thread's affinity mask, ascending; at least one.
std::vector<int> allowed_cpus();

// How many processors this process may use: the affinity mask cut by the cgroup's CPU quota (v1 and v2), at least 1.
// `root` stands for "/" in tests.
int usable_cpus(const char* root = "/");

}  // namespace braid::kernels
