// The tile instructions, as inline assembly: gcc 12's _tile_loadconfig hands the compiler 8 of its 64 bytes and its _tile_loadd has no
// memory clobber. What multiplies takes the tiles as a parameter, so that tests can run it on an emulation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::kernels::amx {

// Operand of LDTILECFG (Intel SDM volume 2), palette 1: eight tiles of at most 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

constexpr int kTileRows = 16;
constexpr std::int64_t kTileRowBytes = 64;
constexpr std::int64_t kTileBytes = kTileRows * kTileRowBytes;

// Tiles 0 to 3 are sums and 4 and 5 activations, of `height` rows; 6 and 7 are weights. All are 64 bytes wide.
static inline TileConfig tile_config(std::int64_t height) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? height : kTileRows);
  }
  return config;
}

struct HardwareTiles {
  static void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory"); }
  static void reset() { __asm__ volatile("tilerelease" : : : "memory"); }

  template <int kTile>
  [[gnu::always_inline]] static inline void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  // Rows are `stride` bytes apart.
  template <int kTile>
  [[gnu::always_inline]] static inline void load(const void* from, std::int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  // The same of rows that are not needed again soon, so that they need not take a place in the first-level cache.
  template <int kTile>
  [[gnu::always_inline]] static inline void load_once(const void* from, std::int64_t stride) {
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  [[gnu::always_inline]] static inline void store(void* to, std::int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  // sum += signed activations * unsigned weights, each four bytes to an int32.
  template <int kSum, int kX, int kW>
  [[gnu::always_inline]] static inline void multiply_unsigned() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
  }
  template <int kSum, int kX, int kW>
  [[gnu::always_inline]] static inline void multiply_signed() {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
  }
  // sum += activations * weights, each two bf16 to a float.
  template <int kSum, int kX, int kW>
  [[gnu::always_inline]] static inline void multiply_bf16() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
  }
};

}  // namespace braid::kernels::amx
