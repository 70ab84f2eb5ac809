// What a step does besides matrix products, for one thread.
#include "perf/kernels/bench.h"

#include <numeric>
#include <vector>

namespace braid::kernels::perf {
namespace {

// Rows of one sequence at the end of `context` positions, with the heads of TinyLlama (32 over 4, head_dim 64) in blocks of 16; the last
// argument is the bits of a key.
void Attention(benchmark::State& state) {
  const KernelTable& kernels = tier();
  const auto context = static_cast<std::int32_t>(state.range(0));
  const auto rows = static_cast<std::int32_t>(state.range(1));
  const std::int32_t heads = 32;
  const std::size_t bytes = state.range(2) == 32 ? 4 : state.range(2) == 8 ? 1 : 2;
  KvLayer kv;
  kv.type = bytes == 4 ? KvType::kF32 : bytes == 1 ? KvType::kInt8 : KvType::kF16;
  kv.head_dim = 64;
  kv.kv_heads = 4;
  kv.value_offset = static_cast<std::size_t>(kv.block_tokens * kv.head_dim) * bytes;
  kv.scale_offset = 2 * kv.value_offset;
  kv.head_stride = kv.scale_offset + (bytes == 1 ? static_cast<std::size_t>(kv.block_tokens) * 4 : 0);
  std::vector<std::int32_t> blocks(static_cast<std::size_t>((context + 15) / 16));
  std::iota(blocks.begin(), blocks.end(), 0);
  constexpr std::size_t kLayers = 22;  // read in turn, so that they come from memory, and laid out as in a model: a block has all layers
  const std::size_t layer_bytes = kv.head_stride * static_cast<std::size_t>(kv.kv_heads);
  kv.block_stride = kLayers * layer_bytes;
  const Bytes pool(kv.block_stride * blocks.size());
  std::vector<AttentionRow> table;
  double products = 0;
  for (std::int32_t r = 0; r < rows; ++r) {
    table.push_back({blocks.data(), context - rows + r});
    products += context - rows + r + 1;
  }
  const std::int64_t width = heads * kv.head_dim;
  const Bytes queries(static_cast<std::size_t>(rows * width) * sizeof(float));
  const Bytes out(queries.size());
  const Bytes scratch(kernels.attention_scratch_bytes(heads, kv.head_dim, kv.latent));
  const AttentionArgs args{.kv = &kv,
                           .rows = table.data(),
                           .queries = queries.floats(),
                           .out = out.floats(),
                           .query_stride = width,
                           .out_stride = width,
                           .heads = heads,
                           .scale = 0.125F,
                           .scratch = scratch.data()};
  std::size_t layer = 0;
  for (auto _ : state) {
    kv.base = pool.data() + layer++ % kLayers * layer_bytes;
    kernels.attention(args, 0, rows, 0, kv.kv_heads);
  }
  count_rate(state, "GOP/s", products * 4.0 * static_cast<double>(width));
  count_rate(state, "GB/s", static_cast<double>(layer_bytes * blocks.size()));
}
BENCHMARK(Attention)->ArgsProduct({{128, 4096}, {1, 64}, {8, 16, 32}})->Unit(benchmark::kMicrosecond);

void Rms_norm(benchmark::State& state) {
  const Bytes x(2048 * 4);
  const Bytes out(2048 * 4);
  const KernelTable& kernels = tier();
  for (auto _ : state) kernels.rms_norm(x.floats(), x.floats(), 2048, 1e-5F, out.floats());
}
BENCHMARK(Rms_norm);

void Rope(benchmark::State& state) {
  const Bytes x(2048 * 4);
  const Bytes angles(32 * 4);
  const KernelTable& kernels = tier();
  for (auto _ : state) kernels.rope(x.floats(), 32, 64, 64, angles.floats(), angles.floats(), state.range(0) != 0);
}
BENCHMARK(Rope)->Arg(0)->Arg(1);

void Swiglu(benchmark::State& state) {
  const Bytes x(5632 * 4);
  const Bytes out(5632 * 4);
  const KernelTable& kernels = tier();
  for (auto _ : state) kernels.swiglu(x.floats(), x.floats(), 5632, out.floats());
}
BENCHMARK(Swiglu);

void Argmax(benchmark::State& state) {
  const Bytes x(152064 * 4);
  const KernelTable& kernels = tier();
  for (auto _ : state) benchmark::DoNotOptimize(kernels.argmax(x.floats(), 152064));
}
BENCHMARK(Argmax)->Unit(benchmark::kMicrosecond);

void Exp_sum(benchmark::State& state) {
  const Bytes x(152064 * 4);
  const Bytes out(152064 * 4);
  const KernelTable& kernels = tier();
  for (auto _ : state) benchmark::DoNotOptimize(kernels.exp_sum(x.floats(), 152064, 1.0F, 0.0F, out.floats()));
}
BENCHMARK(Exp_sum)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace braid::kernels::perf
