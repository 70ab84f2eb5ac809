// What the kernel benchmarks share. BRAID_ISA picks the tier and BRAID_THREADS the team; without them the best tier runs on all
// usable processors.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/select.h"
#include "kernels/thread_team.h"

#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace braid::kernels::perf {

inline const KernelTable& tier() {
  const char* name = std::getenv("BRAID_ISA");
  std::string missing;
  if (name != nullptr) {
    if (const auto isa = parse_isa(name)) {
      if (const KernelTable* table = kernel_table(*isa, missing)) return *table;
    }
  }
  return best_kernel_table();
}

inline int threads() {
  const char* count = std::getenv("BRAID_THREADS");
  return count != nullptr ? std::atoi(count) : usable_cpus();
}

// Page-aligned bytes, all 0x2A: a small positive number as F16, BF16 or F32.
class Bytes {
 public:
  explicit Bytes(std::size_t size) : size_(size), data_(static_cast<std::byte*>(::operator new (size, std::align_val_t{4096}))) {
    std::memset(data_, 0x2A, size);
  }
  ~Bytes() { ::operator delete (data_, std::align_val_t{4096}); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

// Panels in claims of `chunk`.
inline void multiply(ThreadTeam& team, const KernelTable& kernels, const MatmulArgs& args, std::int64_t chunk) {
  team.for_claims(args.weights->panels(), chunk, [&](ThreadTeam::Claims& claims, int) {
    kernels.matmul(
        args, {[](void* context, PanelRange& range) { return static_cast<ThreadTeam::Claims*>(context)->next(range.begin, range.end); },
               &claims});
  });
}

inline void count_rate(benchmark::State& state, const char* name, double amount_per_iteration) {
  state.counters[name] =
      benchmark::Counter(amount_per_iteration * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

}  // namespace braid::kernels::perf
