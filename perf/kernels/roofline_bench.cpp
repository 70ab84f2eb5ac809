#include "kernels/x86/cpu_features.h"
#include "perf/kernels/bench.h"
#include "perf/kernels/peaks.h"

#include <atomic>

namespace braid::kernels::perf {
namespace {

constexpr std::int64_t kInstructions = 1 << 22;

void Roofline_read(benchmark::State& state) {
  if (!cpu_features().avx2_fma_f16c) return state.SkipWithError("needs AVX2");
  const CpuFeatures features = cpu_features();
  const auto read = features.avx512 ? (features.side_by_side ? read_bytes<4> : read_bytes<1>)
                                    : (features.side_by_side ? read_bytes_avx2<4> : read_bytes_avx2<1>);
  ThreadTeam team(threads());
  const std::int64_t bytes = state.range(0) << 20;
  const Bytes data(static_cast<std::size_t>(bytes) + 8192);
  std::atomic<std::int64_t> sink{0};
  for (auto _ : state) {
    team.for_chunks(bytes, 1 << 18, [&](std::int64_t begin, std::int64_t end, int) {
      sink.fetch_add(read(data.data() + begin, end - begin), std::memory_order_relaxed);
    });
  }
  count_rate(state, "GB/s", static_cast<double>(bytes));
}
BENCHMARK(Roofline_read)->Arg(1)->Arg(8)->Arg(64)->Arg(128)->Arg(256)->Arg(640)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);

void Roofline_vnni(benchmark::State& state) {
  if (!cpu_features().avx512) return state.SkipWithError("needs AVX-512 VNNI");
  ThreadTeam team(threads());
  for (auto _ : state) {
    team.for_chunks(team.size(), 1, [](std::int64_t, std::int64_t, int) { benchmark::DoNotOptimize(multiply_vnni(kInstructions)); });
  }
  count_rate(state, "GOP/s", 128.0 * kInstructions * team.size());
}
BENCHMARK(Roofline_vnni)->UseRealTime()->Unit(benchmark::kMillisecond);

void measure_avx2(benchmark::State& state, std::int64_t (*multiply)(std::int64_t)) {
  ThreadTeam team(threads());
  for (auto _ : state) {
    team.for_chunks(team.size(), 1, [&](std::int64_t, std::int64_t, int) { benchmark::DoNotOptimize(multiply(kInstructions)); });
  }
  count_rate(state, "GOP/s", 64.0 * kInstructions * team.size());
}

void Roofline_avx2(benchmark::State& state) {
  if (!cpu_features().avx2_fma_f16c) return state.SkipWithError("needs AVX2");
  measure_avx2(state, multiply_signed_avx2);
}
BENCHMARK(Roofline_avx2)->UseRealTime()->Unit(benchmark::kMillisecond);

void Roofline_avx_vnni(benchmark::State& state) {
  if (!cpu_features().avx_vnni) return state.SkipWithError("needs AVX-VNNI");
  measure_avx2(state, multiply_vnni_avx2);
}
BENCHMARK(Roofline_avx_vnni)->UseRealTime()->Unit(benchmark::kMillisecond);

void Roofline_fma(benchmark::State& state) {
  if (!cpu_features().avx512) return state.SkipWithError("needs AVX-512");
  ThreadTeam team(threads());
  for (auto _ : state) {
    team.for_chunks(team.size(), 1, [](std::int64_t, std::int64_t, int) { benchmark::DoNotOptimize(multiply_fma(kInstructions)); });
  }
  count_rate(state, "GOP/s", 32.0 * kInstructions * team.size());
}
BENCHMARK(Roofline_fma)->UseRealTime()->Unit(benchmark::kMillisecond);

template <class Multiply>
void measure_tiles(benchmark::State& state, Multiply multiply, double operations) {
  std::string missing;
  if (kernel_table(Isa::kAmx, missing) == nullptr) return state.SkipWithError(missing.c_str());
  ThreadTeam team(threads());
  for (auto _ : state) {
    team.for_chunks(team.size(), 1, [&](std::int64_t, std::int64_t, int) { multiply(kInstructions / 8); });
  }
  count_rate(state, "GOP/s", operations * kInstructions / 8 * team.size());
}

void Roofline_int8_tiles(benchmark::State& state) { measure_tiles(state, multiply_int8_tiles, 2.0 * 16 * 64 * 16); }
BENCHMARK(Roofline_int8_tiles)->UseRealTime()->Unit(benchmark::kMillisecond);

void Roofline_bf16_tiles(benchmark::State& state) { measure_tiles(state, multiply_bf16_tiles, 2.0 * 16 * 32 * 16); }
BENCHMARK(Roofline_bf16_tiles)->UseRealTime()->Unit(benchmark::kMillisecond);

// An empty parallel loop, one right after the other.
void Barrier(benchmark::State& state) {
  ThreadTeam team(threads());
  for (auto _ : state) {
    team.for_chunks(team.size(), 1, [](std::int64_t, std::int64_t, int) {});
  }
}
BENCHMARK(Barrier)->UseRealTime();

}  // namespace
}  // namespace braid::kernels::perf
