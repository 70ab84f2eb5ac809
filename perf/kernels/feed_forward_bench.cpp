// Gate, up, SwiGLU and the preparing of down's rows, as steps and with SwiGLU in the product (MatmulArgs::up).
#include "perf/kernels/bench.h"

namespace braid::kernels::perf {
namespace {

constexpr std::int64_t kLine = 64 / sizeof(float);

struct FeedForward {
  FeedForward(const KernelTable& table, WeightType weights, std::int64_t inputs, std::int64_t outputs, std::int64_t row_count)
      : kernels(table), type(weights), features(outputs), rows(row_count), stride((outputs / kLine | 1) * kLine),
        gate_bytes(table.packed_bytes(type, outputs, inputs) + 8192), up_bytes(table.packed_bytes(type, outputs, inputs) + 8192),
        prepared(table.prepared_bytes(type, inputs, rows)), prepared_for_down(table.prepared_bytes(type, outputs, rows)),
        x(floats(rows * inputs)), gated(floats(rows * stride)), raised(floats(rows * stride)),
        scratch(floats(features * threads())), gate{type, outputs, inputs, gate_bytes.data()}, up{type, outputs, inputs, up_bytes.data()} {
    kernels.prepare_rows(type, x.floats(), inputs, {0, rows, rows}, inputs, prepared.data());
  }

  static std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

  MatmulArgs product(const PackedMatrix& matrix, const Bytes& out) const {
    return {.weights = &matrix,
            .prepared = prepared.data(),
            .rows = rows,
            .out = out.floats(),
            .out_stride = stride,
            .past_caches = rows * features * std::int64_t{sizeof(float)} >= kernels.large_results,
            .side_by_side = kernels.side_by_side};
  }

  void in_steps(ThreadTeam& team) const {
    multiply(team, kernels, product(gate, gated), kClaim);
    multiply(team, kernels, product(up, raised), kClaim);
    prepare(team, [&](std::int64_t row, int member) -> const float* {
      float* const out = scratch.floats() + member * features;
      kernels.swiglu(gated.floats() + row * stride, raised.floats() + row * stride, features, out);
      return out;
    });
  }

  void fused(ThreadTeam& team) const {
    MatmulArgs args = product(gate, gated);
    args.up = &up;
    multiply(team, kernels, args, kClaim);
    prepare(team, [&](std::int64_t row, int) -> const float* { return gated.floats() + row * stride; });
  }

  template <class Input>
  void prepare(ThreadTeam& team, Input&& input) const {
    team.for_chunks(rows, 16, [&](std::int64_t begin, std::int64_t end, int member) {
      for (std::int64_t row = begin; row < end; ++row) {
        kernels.prepare_rows(type, input(row, member), features, {row, row + 1, rows}, features, prepared_for_down.data());
      }
    });
  }

  static constexpr std::int64_t kClaim = 8;  // panels
  const KernelTable& kernels;
  const WeightType type;
  const std::int64_t features;
  const std::int64_t rows;
  const std::int64_t stride;  // as the workspace's rows
  const Bytes gate_bytes, up_bytes, prepared, prepared_for_down, x, gated, raised, scratch;
  const PackedMatrix gate, up;
};

// Weight type, rows, embedding, features; the last argument: whether it is one product.
void Feed_forward(benchmark::State& state) {
  const auto type = static_cast<WeightType>(state.range(0));
  const FeedForward layer(tier(), type, state.range(2), state.range(3), state.range(1));
  const bool fused = state.range(4) != 0;
  if (fused && (tier().fuses_swiglu == nullptr || !tier().fuses_swiglu(type, layer.rows)))
    return state.SkipWithError("this tier fuses nothing");
  ThreadTeam team(threads());
  for (auto _ : state) fused ? layer.fused(team) : layer.in_steps(team);
  state.SetLabel(std::string(weight_format(type)->name) + " " + tier().name);
}
BENCHMARK(Feed_forward)
    ->ArgsProduct({{8, static_cast<int>(WeightType::kRotated8), 12}, {16, 32, 64, 512}, {2048}, {5632}, {0, 1}})
    ->ArgsProduct({{8, static_cast<int>(WeightType::kRotated8)}, {16, 32, 64, 512}, {576}, {1536}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace braid::kernels::perf
