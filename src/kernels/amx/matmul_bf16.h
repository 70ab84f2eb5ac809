// Products of bf16 activations with F16 and BF16 weights by tiles, for any implementation of the tile instructions.
//
// One tile product is 16 rows by 32 inputs by 16 outputs in 16 cycles. Per pair of panels, 256 inputs of weights are expanded into the
// first-level cache (16 KB) in the order the tiles want, two inputs side by side; then all rows pass by in pairs of tiles: sums 0 to 3
// are (row tile, panel), so that four loads feed four products. Sums stay floats of the tiles throughout: an output is one chain of tile
// products over the inputs in order, whatever the number of rows.
//
// Error: activations round to 8 significant bits (a relative 2^-9 each), and F16 weights too; BF16 weights are exact. The instruction
// takes subnormal numbers for zeros.
#pragma once

#include "kernels/amx/bf16.h"
#include "kernels/amx/row_tiles.h"
#include "kernels/avx512/simd.h"
#include "kernels/cache_hints.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::amx {

constexpr std::int64_t kStepInputs = 32;  // of one tile product
constexpr std::int64_t kChunkSteps = 8;
constexpr std::int64_t kChunkInputs = kChunkSteps * kStepInputs;

// One chunk of one panel.
struct ExpandedChunk {
  alignas(64) std::byte tiles[kChunkSteps * kTileBytes];
};

// Inputs k and k + 1 of a panel as bf16, zeros from w.inputs on.
static inline __m512i load_inputs(const PackedMatrix& w, const std::byte* panel, std::int64_t k) {
  const std::byte* const even = panel + k * kPanel * 2;
  const std::byte* const odd = even + kPanel * 2;
  const __mmask16 has_even = k < w.inputs ? 0xFFFF : 0;
  const __mmask16 has_odd = k + 1 < w.inputs ? 0xFFFF : 0;
  const __m256i low = _mm256_maskz_loadu_epi16(has_even, even);
  const __m256i high = _mm256_maskz_loadu_epi16(has_odd, odd);
  if (w.type == WeightType::kF16) return round_to_bf16(_mm512_cvtph_ps(low), _mm512_cvtph_ps(high));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// Inputs [begin, begin + 32 * steps) of a pair of panels. With every two inputs a line of what comes next is fetched for each.
static inline void expand_chunk(const PackedMatrix& w, const std::byte* const (&panels)[kPanels], std::int64_t begin, std::int64_t steps,
                                const NextLines& next, ExpandedChunk (&out)[kPanels]) {
  const __m512i places = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                          18, 2, 17, 1, 16, 0);
  for (std::int64_t line = 0; line < steps * kTileRows; ++line) {
    next.fetch<kFirstLevel>(begin / 2 + line);
    for (int i = 0; i < kPanels; ++i)
      _mm512_store_si512(out[i].tiles + line * 64, _mm512_permutexvar_epi16(places, load_inputs(w, panels[i], begin + line * 2)));
  }
}

// Adds `steps` tile products to the sums of one or two row tiles and of two panels.
template <int kTiles, class Tiles>
static void multiply_chunk(Tiles& tiles, const ExpandedChunk* weights, std::int64_t steps, const std::byte* const* x,
                           std::int64_t row_bytes, float* const (*sums)[kPanels]) {
  tiles.template load<0>(sums[0][0], kTileRowBytes);
  tiles.template load<1>(sums[0][1], kTileRowBytes);
  if constexpr (kTiles == 2) {
    tiles.template load<2>(sums[1][0], kTileRowBytes);
    tiles.template load<3>(sums[1][1], kTileRowBytes);
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    tiles.template load<4>(x[0] + step * kTileRowBytes, row_bytes);
    tiles.template load<6>(weights[0].tiles + step * kTileBytes, kTileRowBytes);
    tiles.template load<7>(weights[1].tiles + step * kTileBytes, kTileRowBytes);
    tiles.template multiply_bf16<0, 4, 6>();
    tiles.template multiply_bf16<1, 4, 7>();
    if constexpr (kTiles == 2) {
      tiles.template load<5>(x[1] + step * kTileRowBytes, row_bytes);
      tiles.template multiply_bf16<2, 5, 6>();
      tiles.template multiply_bf16<3, 5, 7>();
    }
  }
  tiles.template store<0>(sums[0][0], kTileRowBytes);
  tiles.template store<1>(sums[0][1], kTileRowBytes);
  if constexpr (kTiles == 2) {
    tiles.template store<2>(sums[1][0], kTileRowBytes);
    tiles.template store<3>(sums[1][1], kTileRowBytes);
  }
}

template <int kTiles, class Tiles>
static void multiply_tiles(Tiles& tiles, const ExpandedChunk* weights, std::int64_t steps, const std::byte* x, std::int64_t row_bytes,
                           const RowTiles& rows, std::int64_t first_tile, std::int64_t end_tile, BandSums& band) {
  for (std::int64_t tile = first_tile; tile < end_tile; tile += kTiles) {
    const std::byte* from[kTiles];
    float* sums[kTiles][kPanels];
    for (int i = 0; i < kTiles; ++i) {
      from[i] = x + rows.first_row(tile + i) * row_bytes;
      for (int p = 0; p < kPanels; ++p) sums[i][p] = band.sums[p][tile + i][0];
    }
    multiply_chunk<kTiles>(tiles, weights, steps, from, row_bytes, sums);
  }
}

// One band of rows times two panels; the second one is any where there is only one, and its sums are dropped.
template <class Tiles>
static void multiply_band(Tiles& tiles, const PackedMatrix& w, const std::byte* panel, std::int64_t second, const std::byte* x,
                          std::int64_t row_bytes, const RowTiles& rows, BandSums& band) {
  ExpandedChunk weights[kPanels];
  const std::int64_t panel_bytes = panel_layout(w.type, w.inputs).bytes;
  const NextLines next(panel + kPanels * panel_bytes, kPanels * panel_bytes, (w.inputs + 1) / 2, true);
  const std::int64_t count = rows.count();
  const std::int64_t paired = count / 2 * 2;
  for (auto& panel_sums : band.sums) {
    for (std::int64_t tile = 0; tile < count; ++tile) {
      for (int row = 0; row < kTileRows; ++row) _mm512_store_ps(panel_sums[tile][row], _mm512_setzero_ps());
    }
  }
  for (std::int64_t begin = 0; begin < w.inputs; begin += kChunkInputs) {
    const std::int64_t left = (w.inputs - begin + kStepInputs - 1) / kStepInputs;
    const std::int64_t steps = left < kChunkSteps ? left : kChunkSteps;
    expand_chunk(w, {panel, panel + second}, begin, steps, next, weights);
    const std::byte* from = x + begin * 2;
    multiply_tiles<2>(tiles, weights, steps, from, row_bytes, rows, 0, paired, band);
    multiply_tiles<1>(tiles, weights, steps, from, row_bytes, rows, paired, count, band);
  }
}

template <class Tiles>
static void multiply_bf16(Tiles& tiles, const MatmulArgs& args, std::int64_t row_bytes, std::int64_t panel_begin, std::int64_t panel_end) {
  const PackedMatrix& w = *args.weights;
  const std::int64_t panel_bytes = panel_layout(w.type, w.inputs).bytes;
  BandSums band;
  for (std::int64_t row = 0; row < args.rows; row += kBandRows) {
    const RowTiles rows{args.rows - row < kBandRows ? args.rows - row : kBandRows};
    tiles.configure(tile_config(rows.height()));
    for (std::int64_t p = panel_begin; p < panel_end; p += kPanels) {
      const std::int64_t panels = panel_end - p < kPanels ? panel_end - p : kPanels;
      multiply_band(tiles, w, w.data + p * panel_bytes, (panels - 1) * panel_bytes, args.prepared + row * row_bytes, row_bytes, rows, band);
      for (std::int64_t i = 0; i < panels; ++i) {
        write_panel(band.sums[i], rows, args.out + row * args.out_stride + (p + i) * kPanel, args.out_stride, w.outputs - (p + i) * kPanel,
                    args.accumulate);
      }
    }
  }
  tiles.reset();
}

}  // namespace braid::kernels::amx
