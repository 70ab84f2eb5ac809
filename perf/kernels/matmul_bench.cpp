// Matrix products over the shapes of one model's layer, and over a matrix of 1 GB that no cache holds.
#include "perf/kernels/bench.h"

namespace braid::kernels::perf {
namespace {

constexpr auto kRotated8 = static_cast<std::int64_t>(WeightType::kRotated8);

void run(benchmark::State& state, WeightType type, std::int64_t outputs, std::int64_t inputs, std::int64_t rows, bool past_caches = false) {
  const KernelTable& kernels = tier();
  ThreadTeam team(threads());
  const Bytes weights(kernels.packed_bytes(type, outputs, inputs) + 8192);
  const Bytes prepared(kernels.prepared_bytes(type, inputs, rows));
  const Bytes x(static_cast<std::size_t>(rows * inputs) * sizeof(float));
  const Bytes out(static_cast<std::size_t>(rows * outputs) * sizeof(float));
  const PackedMatrix matrix{type, outputs, inputs, weights.data()};
  kernels.prepare_rows(type, x.floats(), inputs, {0, rows, rows}, inputs, prepared.data());
  const MatmulArgs args{&matrix, prepared.data(), rows, out.floats(), outputs, false, past_caches, kernels.side_by_side};
  for (auto _ : state) multiply(team, kernels, args, 8);
  count_rate(state, "GB/s", static_cast<double>(kernels.packed_bytes(type, outputs, inputs)));
  count_rate(state, "GOP/s", 2.0 * static_cast<double>(outputs * inputs * rows));
  state.SetLabel(std::string(weight_format(type)->name) + " " + kernels.name);
}

void Matmul_1GB(benchmark::State& state) {
  const auto type = static_cast<WeightType>(state.range(0));
  const WeightFormat& format = *weight_format(type);
  const std::int64_t inputs = 2048;
  const std::int64_t outputs = (std::int64_t{1} << 30) * format.block_values / (format.block_bytes * inputs);
  run(state, type, outputs, inputs, state.range(1));
}
BENCHMARK(Matmul_1GB)->ArgsProduct({{8, kRotated8, 2, 1, 12, 14}, {1, 2, 4, 8, 16, 32}})->UseRealTime()->Unit(benchmark::kMillisecond);

// [outputs, inputs] of TinyLlama-1.1B: attention output, gate or up, down.
void Matmul_layer(benchmark::State& state) {
  run(state, static_cast<WeightType>(state.range(0)), state.range(1), state.range(2), state.range(3));
}
BENCHMARK(Matmul_layer)
    ->ArgsProduct({{8, kRotated8, 2}, {5632}, {2048}, {1, 8, 32, 512}})
    ->ArgsProduct({{12, 14, 13, 3, 6, 20, 23, 10, 11}, {5632}, {2048}, {1, 32, 512}})
    ->ArgsProduct({{8, kRotated8}, {2048}, {5632}, {1, 32, 512}})
    ->ArgsProduct({{0, 1}, {5632}, {2048}, {1, 32, 512}})
    ->ArgsProduct({{8, kRotated8}, {576}, {576}, {1, 32, 512}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// Logits of SmolLM2-135M, and its gate or up with a long prompt; the last argument: whether results go past the caches.
void Matmul_large_results(benchmark::State& state) {
  run(state, static_cast<WeightType>(state.range(0)), state.range(1), 576, state.range(2), state.range(3) != 0);
}
BENCHMARK(Matmul_large_results)
    ->ArgsProduct({{8, kRotated8}, {49'152}, {16, 32, 64}, {0, 1}})
    ->ArgsProduct({{kRotated8}, {1536, 4864}, {512}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// The same product of `layers` layers, one after the other, so that weights come from where they lie in a whole model.
void Matmul_layers(benchmark::State& state) {
  const KernelTable& kernels = tier();
  const auto type = static_cast<WeightType>(state.range(0));
  const std::int64_t outputs = state.range(1);
  const std::int64_t inputs = state.range(2);
  const std::int64_t rows = state.range(3);
  const std::int64_t layers = state.range(4);
  ThreadTeam team(threads());
  const std::size_t layer_bytes = kernels.packed_bytes(type, outputs, inputs);
  const Bytes weights(layer_bytes * static_cast<std::size_t>(layers) + 8192);
  const Bytes prepared(kernels.prepared_bytes(type, inputs, rows));
  const Bytes x(static_cast<std::size_t>(rows * inputs) * sizeof(float));
  const Bytes out(static_cast<std::size_t>(rows * outputs) * sizeof(float));
  kernels.prepare_rows(type, x.floats(), inputs, {0, rows, rows}, inputs, prepared.data());
  for (auto _ : state) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const PackedMatrix matrix{type, outputs, inputs, weights.data() + layer_bytes * static_cast<std::size_t>(layer)};
      multiply(team, kernels, {&matrix, prepared.data(), rows, out.floats(), outputs, false, false, kernels.side_by_side}, 12);
    }
  }
  count_rate(state, "GB/s", static_cast<double>(layer_bytes) * static_cast<double>(layers));
  state.SetLabel(std::string(weight_format(type)->name) + " " + kernels.name);
}
BENCHMARK(Matmul_layers)  // gate and up of SmolLM2-135M; 30 are 53 MB, 80 as much as the whole model
    ->ArgsProduct({{8, kRotated8}, {3072}, {576}, {1, 2, 8, 16, 32, 64}, {1, 30, 80}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void Prepare_rows(benchmark::State& state) {
  const KernelTable& kernels = tier();
  const auto type = static_cast<WeightType>(state.range(0));
  const std::int64_t inputs = 2048;
  const std::int64_t rows = state.range(1);
  const Bytes x(static_cast<std::size_t>(rows * inputs) * sizeof(float));
  const Bytes prepared(kernels.prepared_bytes(type, inputs, rows));
  for (auto _ : state) kernels.prepare_rows(type, x.floats(), inputs, {0, rows, rows}, inputs, prepared.data());
  count_rate(state, "GB/s", static_cast<double>(x.size()));
}
BENCHMARK(Prepare_rows)->ArgsProduct({{8, kRotated8}, {1, 32}});

void Pack(benchmark::State& state) {
  const KernelTable& kernels = tier();
  const auto type = static_cast<WeightType>(state.range(0));
  const std::int64_t outputs = 4096;
  const std::int64_t inputs = 2048;
  const Bytes stored(stored_row_bytes(*weight_format(type), inputs) * static_cast<std::size_t>(outputs));
  const Bytes packed(kernels.packed_bytes(type, outputs, inputs));
  for (auto _ : state) kernels.pack(type, stored.data(), outputs, inputs, packed.data(), 0, outputs / kPanel);
  count_rate(state, "GB/s", static_cast<double>(stored.size()));
}
BENCHMARK(Pack)->Arg(8)->Arg(2)->Arg(1)->Arg(0)->Arg(12)->Arg(14)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace braid::kernels::perf
