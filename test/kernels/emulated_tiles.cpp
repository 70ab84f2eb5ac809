#include "kernels/emulated_tiles.h"

#include "kernels/amx/attention.h"
#include "kernels/amx/matmul_bf16.h"
#include "kernels/amx/matmul_quantized.h"
#include "kernels/amx/tier.h"
#include "kernels/avx512/tier.h"
#include "kernels/select.h"
#include "kernels/x86/cpu_features.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace braid::kernels::test {
namespace {

// As the SDM defines the instructions. A tile product whose shapes disagree faults there and aborts here.
class EmulatedTiles {
 public:
  void configure(const amx::TileConfig& config) {
    config_ = config;
    std::memset(tiles_, 0, sizeof(tiles_));
  }
  void reset() { config_ = {}; }

  template <int kTile>
  void zero() {
    zero_tile(kTile);
  }
  template <int kTile>
  void load(const void* from, std::int64_t stride) {
    load_tile(kTile, from, stride);
  }
  template <int kTile>
  void load_once(const void* from, std::int64_t stride) {
    load_tile(kTile, from, stride);
  }
  template <int kTile>
  void store(void* to, std::int64_t stride) {
    store_tile(kTile, to, stride);
  }
  template <int kSum, int kX, int kW>
  void multiply_unsigned() {
    multiply<std::int32_t, std::int8_t, std::uint8_t>(kSum, kX, kW, [](int x) { return x; });
  }
  template <int kSum, int kX, int kW>
  void multiply_signed() {
    multiply<std::int32_t, std::int8_t, std::int8_t>(kSum, kX, kW, [](int x) { return x; });
  }
  // Without the instruction's flushing of subnormal numbers.
  template <int kSum, int kX, int kW>
  void multiply_bf16() {
    multiply<float, std::uint16_t, std::uint16_t>(kSum, kX, kW, [](std::uint16_t bits) {
      const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
      float value;
      std::memcpy(&value, &wide, sizeof(value));
      return value;
    });
  }

 private:
  // Compiled once each: the loops have hundreds of these, all of which would be inlined.
  [[gnu::noinline]] void zero_tile(int tile) { std::memset(tiles_[tile], 0, sizeof(tiles_[tile])); }
  [[gnu::noinline]] void load_tile(int tile, const void* from, std::int64_t stride) {
    zero_tile(tile);
    for (int row = 0; row < config_.rows[tile]; ++row) {
      std::memcpy(tiles_[tile][row], static_cast<const std::byte*>(from) + row * stride, config_.row_bytes[tile]);
    }
  }
  [[gnu::noinline]] void store_tile(int tile, void* to, std::int64_t stride) {
    for (int row = 0; row < config_.rows[tile]; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * stride, tiles_[tile][row], config_.row_bytes[tile]);
    }
  }

  template <class Sum, class X, class W, class Value>
  [[gnu::noinline]] void multiply(int sum_tile, int x_tile, int w_tile, Value value) {
    const int depth = config_.row_bytes[x_tile] / 4;
    if (config_.rows[sum_tile] != config_.rows[x_tile] || depth != config_.rows[w_tile] ||
        config_.row_bytes[sum_tile] != config_.row_bytes[w_tile])
      std::abort();
    constexpr int kEach = 4 / sizeof(X);
    for (int m = 0; m < config_.rows[sum_tile]; ++m) {
      for (int n = 0; n < config_.row_bytes[sum_tile] / 4; ++n) {
        Sum sum;
        std::memcpy(&sum, tiles_[sum_tile][m] + n * 4, 4);
        for (int k = 0; k < depth; ++k) {
          X x[kEach];
          W w[kEach];
          std::memcpy(x, tiles_[x_tile][m] + k * 4, 4);
          std::memcpy(w, tiles_[w_tile][k] + n * 4, 4);
          for (int i = 0; i < kEach; ++i) sum += value(x[i]) * value(w[i]);
        }
        std::memcpy(tiles_[sum_tile][m] + n * 4, &sum, 4);
      }
    }
  }

  amx::TileConfig config_;
  std::byte tiles_[8][amx::kTileRows][amx::kTileRowBytes] = {};
};

}  // namespace

void emulated_matmul_quantized(const MatmulArgs& args, const PanelSource& panels) noexcept {
  EmulatedTiles tiles;
  amx::multiply_quantized(tiles, args, panels);
}

void emulated_matmul_bf16(const MatmulArgs& args, std::int64_t row_bytes, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  EmulatedTiles tiles;
  amx::multiply_bf16(tiles, args, row_bytes, panel_begin, panel_end);
}

namespace {

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  if (args.kv->type == KvType::kF32) return avx512::attention(args, row_begin, row_end, kv_head_begin, kv_head_end);
  EmulatedTiles tiles;
  amx::attend_rows(tiles, args, row_begin, row_end, kv_head_begin, kv_head_end);
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  if (args.kv->type == KvType::kF32) return avx512::attention_part(args, row, kv_head, chunk, parts);
  EmulatedTiles tiles;
  amx::attend_part(tiles, args, row, kv_head, chunk, parts);
}

KernelTable make_emulated_attention(const KernelTable& wide) {
  KernelTable table = wide;
  table.isa = Isa::kAmx;
  table.name = "emulated_amx";
  table.attention_scratch_bytes = amx::attention_scratch_bytes;
  table.attention = attention;
  table.attention_part = attention_part;
  return table;
}

}  // namespace

const KernelTable* emulated_attention() {
  std::string missing;
  const KernelTable* wide = kernel_table(Isa::kAvx512, missing);
  if (wide == nullptr || !cpu_features().avx512_bf16) return nullptr;
  static const KernelTable table = make_emulated_attention(*wide);
  return &table;
}

}  // namespace braid::kernels::test
