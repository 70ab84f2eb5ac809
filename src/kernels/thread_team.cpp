#include "kernels/thread_team.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace braid::kernels {
namespace {

constexpr std::chrono::microseconds kSpin{50};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `word` differs from `seen`: spins for at most `spin`, then sleeps in the kernel. Returns the new value.
std::uint32_t await_change(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::microseconds spin) {
  std::uint32_t value = word.load(std::memory_order_seq_cst);
  if (value != seen) return value;
  const auto deadline = std::chrono::steady_clock::now() + spin;
  do {
    for (int i = 0; i < 16; ++i) {
      pause();
      value = word.load(std::memory_order_seq_cst);
      if (value != seen) return value;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  word.wait(seen, std::memory_order_seq_cst);
  return word.load(std::memory_order_seq_cst);
}

void pin_this_thread(int cpu) {
  cpu_set_t* set = CPU_ALLOC(cpu + 1);
  const std::size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

}  // namespace

// A loop is open while `epoch` is odd. A worker that sees it open enters (`active`), looks again, and only then touches the job;
// the owner closes the loop when all chunks are claimed and waits for those inside. A worker that wakes too late, or not at all,
// costs nothing, so a preempted thread delays a loop by one chunk at most.
struct ThreadTeam::Shared {
  alignas(64) std::atomic<std::uint32_t> epoch{0};
  std::atomic<bool> stop{false};
  alignas(64) std::atomic<std::uint32_t> active{0};
  struct Stretch {  // of each member
    alignas(64) std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  std::vector<Stretch> stretches;
  // The job: written by the owner while the loop is closed and nobody is inside.
  alignas(64) std::int64_t chunk = 0;
  Call call = nullptr;
  void* context = nullptr;

  std::chrono::microseconds spin{kSpin};
  std::vector<int> cpus;
  bool strand_is_pinned = false;
  std::vector<std::jthread> workers;

  // Ends the workers, of which there are fewer where the system refused to start one.
  ~Shared() {
    stop.store(true, std::memory_order_release);
    epoch.fetch_add(2, std::memory_order_seq_cst);
    epoch.notify_all();
  }

  void take_part(int member) {
    Claims claims(*this, member);
    call(context, claims, member);
  }

  void work(int member) {
    if (!cpus.empty()) pin_this_thread(cpus[static_cast<std::size_t>(member)]);
    std::uint32_t seen = 0;
    for (;;) {
      seen = await_change(epoch, seen, spin);
      if (stop.load(std::memory_order_acquire)) return;
      if (seen % 2 == 0) continue;
      active.fetch_add(1, std::memory_order_seq_cst);
      if (epoch.load(std::memory_order_seq_cst) == seen) take_part(member);
      if (active.fetch_sub(1, std::memory_order_seq_cst) == 1) active.notify_one();
    }
  }
};

bool ThreadTeam::Claims::next(std::int64_t& begin, std::int64_t& end) {
  const std::size_t size = shared_.stretches.size();
  for (; exhausted_ < size; ++exhausted_) {
    Shared::Stretch& stretch = shared_.stretches[(member_ + exhausted_) % size];
    // A locked instruction waits for all stores before it, so none is spent on finding nothing.
    if (stretch.next.load(std::memory_order_relaxed) >= stretch.end) continue;
    begin = stretch.next.fetch_add(shared_.chunk, std::memory_order_relaxed);
    end = std::min(begin + shared_.chunk, stretch.end);
    if (begin < stretch.end) return true;
  }
  return false;
}

ThreadTeam::ThreadTeam(int threads, std::vector<int> cpus) : shared_(std::make_unique<Shared>()) {
  assert(cpus.empty() || cpus.size() == static_cast<std::size_t>(threads));
  shared_->cpus = std::move(cpus);
  shared_->stretches = std::vector<Shared::Stretch>(static_cast<std::size_t>(threads));
  // With more threads than processors a spinning member keeps a working one off its core.
  if (threads > usable_cpus()) shared_->spin = std::chrono::microseconds{0};
  for (int member = 1; member < threads; ++member) start(member);
}

void ThreadTeam::start(int member) {
  try {
    shared_->workers.emplace_back([shared = shared_.get(), member] { shared->work(member); });
  } catch (const std::system_error& refusal) {
    throw std::system_error(refusal.code(), "the system starts no more than " + std::to_string(member) + " of " +
                                                std::to_string(shared_->stretches.size()) + " compute threads");
  }
}

ThreadTeam::~ThreadTeam() = default;

int ThreadTeam::size() const { return static_cast<int>(shared_->workers.size()) + 1; }

void ThreadTeam::pin_strand() {
  if (shared_->cpus.empty() || std::exchange(shared_->strand_is_pinned, true)) return;
  pin_this_thread(shared_->cpus.front());
}

void ThreadTeam::run(std::int64_t count, std::int64_t chunk, Call call, void* context) {
  Shared& shared = *shared_;
  const bool alone = shared.workers.empty() || count <= chunk;
  shared.chunk = chunk;
  shared.call = call;
  shared.context = context;
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  const auto size = alone ? std::int64_t{1} : static_cast<std::int64_t>(shared.stretches.size());
  for (std::int64_t i = 0; i < size; ++i) {
    Shared::Stretch& stretch = shared.stretches[static_cast<std::size_t>(i)];
    stretch.next.store(chunks * i / size * chunk, std::memory_order_relaxed);
    stretch.end = std::min(count, chunks * (i + 1) / size * chunk);
  }
  if (alone) {
    for (std::size_t i = 1; i < shared.stretches.size(); ++i) shared.stretches[i].end = 0;
    return shared.take_part(0);
  }
  shared.epoch.fetch_add(1, std::memory_order_seq_cst);
  shared.epoch.notify_all();
  shared.take_part(0);
  shared.epoch.fetch_add(1, std::memory_order_seq_cst);
  for (std::uint32_t inside = shared.active.load(std::memory_order_seq_cst); inside != 0;) {
    inside = await_change(shared.active, inside, shared.spin);
  }
}

}  // namespace braid::kernels
