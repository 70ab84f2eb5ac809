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
  // Throws where the system refuses a thread.
  explicit ThreadTeam(int threads, std::vector<int> cpus = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  // Pins the calling thread as member 0 where the team is pinned: once, on the strand, since loading uses the team on another thread.
  void pin_strand();

  class Claims;

  // Calls body(claims, member) once in each member that comes in time; together they claim [0, count) in chunks of at most `chunk`. A body goes
  // on until there are no more. Returns when all bodies have. `member` in [0, size()) picks per-thread scratch. Only the strand's thread calls it; bodies do not nest it.
  template <class Body>
  void for_claims(std::int64_t count, std::int64_t chunk, Body&& body) {
    run(
        count, chunk,
        [](void* context, Claims& claims, int member) { (*static_cast<std::remove_reference_t<Body>*>(context))(claims, member); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(begin, end, member) for each chunk.
  template <class Body>
  void for_chunks(std::int64_t count, std::int64_t chunk, Body&& body);

 private:
  using Call = void (*)(void* context, Claims& claims, int member);
  void start(int member);
  void run(std::int64_t count, std::int64_t chunk, Call call, void* context);

  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// The chunks of a loop that one member claims, by fetch_add: of its own stretch first, so that it reads memory in order, then of the others'.
class ThreadTeam::Claims {
 public:
  // The next one, [begin, end). False: all of the loop are claimed.
  bool next(std::int64_t& begin, std::int64_t& end);

 private:
  friend Shared;
  Claims(Shared& shared, int member) : shared_(shared), member_(static_cast<std::size_t>(member)) {}

  Shared& shared_;
  std::size_t member_;
  std::size_t exhausted_ = 0;  // stretches
};

template <class Body>
void ThreadTeam::for_chunks(std::int64_t count, std::int64_t chunk, Body&& body) {
  for_claims(count, chunk, [&body](Claims& claims, int member) {
    for (std::int64_t begin = 0, end = 0; claims.next(begin, end);) body(begin, end, member);
  });
}

// The processors of the calling thread's affinity mask, ascending; at least one.
std::vector<int> allowed_cpus();

// How many processors this process may use: the affinity mask cut by the cgroup's CPU quota (v1 and v2), at least 1.
// `root` stands for "/" in tests.
int usable_cpus(const char* root = "/");

}  // namespace braid::kernels
