// Products of 8-bit activations with 8-bit weights that have one scale for a group of 512 inputs (WeightType::kRotated8; group_end has the exception)
// by tiles, for any implementation of the tile instructions.
//
// Packed codes are tiles as they are, so nothing is expanded and a weight takes one tile product: 16 rows by 64 inputs by 16 outputs in 16
// cycles. Sums 0 to 3 are (row tile, panel) of two by two, so that four loads feed four products. For each group the panels of a pass go by
// in pairs for each pair of row tiles, whose activations then come from the first-level cache for all but the first. Of one pair of
// row tiles weights, which a pass loads once, and of more the activations are kept out of that cache (perf/README.md).
//
// Two panels side by side may be those of gate and of up (panel_turns.h): then SwiGLU of both is what is written, half as many results.
//
// As in matmul_quantized.h the sums of a square of tiles are stored while the next one begins, and become floats between the products of
// the one after that.
//
// Limit: lines from the second-level cache, activations and float sums (perf/README.md has the share reached).
#pragma once

#include "kernels/amx/panel_turns.h"
#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/row_tiles.h"
#include "kernels/avx512/weight_codes.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::amx {
namespace {  // this header is compiled for wide ISAs: nothing of it may be shared with other sources

// Two row tiles times two panels, one group of inputs. Of the second of either there may be none.
struct Square {
  struct Rows {
    const std::byte* x = nullptr;  // prepared tile
    float* sums[2] = {};           // of each panel, [kTileRows][kPanel]
    float* out = nullptr;          // of the tile's first row and the first panel
    int count = 0;                 // rows that the tile has
  };
  const std::byte* codes[2] = {};  // of each panel
  __m512 scales[2];
  std::int64_t group = 0;
  int steps = 0;  // tiles of 64 inputs, a few more than kSteps at most; 0: nothing to do
  bool two_tiles = false;
  bool two_panels = false;
  bool first = false;  // group of its panels
  bool last = false;
  bool whole = false;  // nothing is missing
  __mmask16 outputs[2] = {};
  Rows rows[2];
};

// kSwiGlu: a pair of panels is one of gate and one of up, and what is written is SwiGLU of both.
template <class Tiles, bool kSwiGlu>
class GroupedMatmul {
 public:
  GroupedMatmul(Tiles& tiles, const MatmulArgs& args)
      : tiles_(tiles), args_(args), layout_(panel_layout(args.weights->type, args.weights->inputs)), turns_(args, layout_.bytes),
        prepared_(args.weights->type, args.weights->inputs), blocks_(args.weights->inputs / kBlockValues) {}

  void run(const PanelSource& panels) {
    const std::int64_t count = row_tiles(args_.rows);
    const std::int64_t most = band_tiles(prepared_, count);
    tiles_.configure(tile_config(args_.rows < kTileRows ? args_.rows : kTileRows));
    for (PanelRange range; panels.next(panels.context, range);) {
      for (std::int64_t tile = 0; tile < count; tile += most)
        multiply_band(tile, tile + most < count ? tile + most : count, turns_.range(range));
    }
    for (int i = 0; i < 2; ++i) {
      squares_[count_ % 3] = Square{};
      multiply(squares_[count_ % 3]);
    }
    tiles_.reset();
  }

 private:
  static constexpr int kSteps = kWideGroupBlocks / 2;  // of a whole group
  static constexpr std::int64_t kFewTiles = 4;         // up to here a pass has more panels
  static constexpr std::int64_t kPassPanels = 2;
  static constexpr std::int64_t kPassPanelsOfFew = 4;
  static constexpr std::int64_t kSumTiles = kBandTiles * kPassPanels;
  static_assert(kFewTiles * kPassPanelsOfFew <= kSumTiles);

  // Row tiles [tile_begin, tile_end).
  void multiply_band(std::int64_t tile_begin, std::int64_t tile_end, const PanelRange& panels) {
    const std::int64_t count = tile_end - tile_begin;
    const std::int64_t width = count <= kFewTiles ? kPassPanelsOfFew : kPassPanels;
    few_rows_ = count <= 2;
    const std::int64_t lines = (blocks_ <= kMostWideGroupBlocks ? layout_.bytes : layout_.group) / 64;
    lines_of_step_ = (lines + (count + 1) / 2 * kSteps - 1) / ((count + 1) / 2 * kSteps);
    lines_of_gap_ = lines_of_step_ / 4;
    for (std::int64_t p = panels.begin; p < panels.end; p += width) {
      const std::int64_t end = p + width < panels.end ? p + width : panels.end;
      for (std::int64_t begin = 0; begin < blocks_; begin = group_end(kCodes8Grouped, begin, blocks_)) {
        for (std::int64_t tile = tile_begin; tile < tile_end; tile += 2) {
          for (std::int64_t q = p; q < end; q += 2) {
            fill(squares_[count_ % 3], begin, {tile, tile_begin, tile_end}, {q, p, end});
            multiply(squares_[count_ % 3]);
          }
        }
      }
    }
  }

  // A place in a range.
  struct Place {
    std::int64_t at;
    std::int64_t begin;
    std::int64_t end;

    bool has_next() const { return at + 1 < end; }
  };

  // In its place, since a copy would have to wait for the fields to arrive in memory, behind all that tiles and rows store.
  [[gnu::always_inline]] inline void fill(Square& square, std::int64_t begin, const Place& tile, const Place& panel) {
    square.two_tiles = tile.has_next();
    square.two_panels = panel.has_next();
    square.group = begin / kWideGroupBlocks;
    const std::int64_t end = group_end(kCodes8Grouped, begin, blocks_);
    square.steps = static_cast<int>((end - begin) / 2);
    square.first = begin == 0;
    square.last = end == blocks_;
    for (int i = 0; i < 2; ++i) {
      const std::byte* const own = turns_.data(panel.at + (square.two_panels ? i : 0));
      square.codes[i] = codes_at(layout_, own, begin);
      square.scales[i] = avx512::load_supers(group_at(layout_, own, begin), 0);
      square.outputs[i] = avx512::first_lanes(args_.weights->outputs - turns_.first_output(panel.at + i));
    }
    square.rows[1].count = 0;
    for (std::int64_t t = 0; t < (square.two_tiles ? 2 : 1); ++t) {
      const std::int64_t first_row = (tile.at + t) * kTileRows;
      Square::Rows& rows = square.rows[t];
      rows.x = args_.prepared + (tile.at + t) * prepared_.bytes;
      for (std::int64_t i = 0; i < (square.two_panels ? 2 : 1); ++i) {
        rows.sums[i] = sums_[((tile.at - tile.begin) / 2 * (panel.end - panel.begin) + panel.at + i - panel.begin) * 2 + t][0];
      }
      rows.out = args_.out + first_row * args_.out_stride + turns_.first_output(panel.at);
      rows.count = static_cast<int>(args_.rows - first_row < kTileRows ? args_.rows - first_row : kTileRows);
    }
    square.whole = square.two_tiles && square.two_panels && square.rows[1].count == kTileRows && square.outputs[1] == 0xFFFF;
    find_next(end, tile, panel);
  }

  // A square's share of what takes the place of its weights next: the group that begins at `end`, or the first one of the next pass.
  void find_next(std::int64_t end, const Place& tile, const Place& panel) {
    const bool last = end == blocks_;
    const std::int64_t next = panel.at + (last ? panel.end - panel.begin : 0);
    fetches_ = next + 1 < turns_.count();
    const std::int64_t share = (tile.at - tile.begin) / 2 * kSteps * lines_of_step_ * 64;
    for (int i = 0; i < 2 && fetches_; ++i) next_[i] = group_at(layout_, turns_.data(next + i), last ? 0 : end) + share;
  }

  // Multiplies `square`, the newest, stores the sums of the one before, and adds those of the one before that to its floats.
  void multiply(const Square& square) {
    const Square& settled = squares_[(count_ + 1) % 3];
    const Square& stored = squares_[(count_ + 2) % 3];
    if (!settled.whole || !stored.whole || !square.whole || square.steps < kSteps) {
      multiply_beside<Settled::kAny>(square, settled);
    } else if (!settled.last) {
      multiply_beside<Settled::kGroup>(square, settled);
    } else if (settled.first && !args_.accumulate) {
      multiply_beside<Settled::kWhole>(square, settled);
    } else {
      multiply_beside<Settled::kLastGroup>(square, settled);
    }
    ++count_;
  }

  // What is settled. Unless it is kAny nothing of the three squares is missing, as is nearly always so, and this is straight code.
  enum class Settled {
    kAny,
    kGroup,  // another one of its panels follows
    kLastGroup,
    kWhole,  // the only one, and nothing is added to the output
  };

  template <Settled kSettled>
  void multiply_beside(const Square& square, const Square& settled) {
    constexpr bool kWhole = kSettled != Settled::kAny;
    std::int32_t(&to)[2][2][kTileRows][kPanel] = integers_[(count_ + 1) % 2];
    RowAdder<kSettled> rows(*this, settled, integers_[count_ % 2]);
    const std::byte* const x0 = square.rows[0].x + square.group * kSteps * kTileBytes;
    const std::byte* const x1 = square.rows[1].x + square.group * kSteps * kTileBytes;
    const bool two_tiles = kWhole || square.two_tiles;
    const bool two_panels = kWhole || square.two_panels;
#pragma GCC unroll 8
    for (int step = 0; step < kSteps; ++step) {
      const bool some = kWhole || step < square.steps;
      const bool leave = step == 0;
      const std::int64_t at = step * kTileBytes;
      if (step == kSteps / 2) rows.begin_tile(1);
      if (some) {
        load_rows<4>(x0 + at);
        load_weights<6>(square.codes[0] + at);
      }
      if (leave) leave_tile<0>(to[0][0]);
      if (some) tiles_.template multiply_unsigned<0, 4, 6>();
      rows.add_row();
      fetch(lines_of_gap_);
      if (some && two_panels) load_weights<7>(square.codes[1] + at);
      if (leave) leave_tile<1>(to[0][1]);
      if (some && two_panels) tiles_.template multiply_unsigned<1, 4, 7>();
      rows.add_row();
      fetch(lines_of_gap_);
      if (some && two_tiles) load_rows<5>(x1 + at);
      if (leave) leave_tile<2>(to[1][0]);
      if (some && two_tiles) tiles_.template multiply_unsigned<2, 5, 6>();
      rows.add_row();
      fetch(lines_of_gap_);
      if (leave) leave_tile<3>(to[1][1]);
      if (some && two_tiles && two_panels) tiles_.template multiply_unsigned<3, 5, 7>();
      rows.add_row();
      prefetch(square, step);
    }
    for (int step = kSteps; step < square.steps; ++step)
      multiply_alone<kWhole>(square, x0 + step * kTileBytes, x1 + step * kTileBytes, step);
  }

  // A step beyond those of a whole group.
  template <bool kWhole>
  [[gnu::always_inline]] inline void multiply_alone(const Square& square, const std::byte* x0, const std::byte* x1, int step) {
    const bool two_tiles = kWhole || square.two_tiles;
    const bool two_panels = kWhole || square.two_panels;
    load_rows<4>(x0);
    load_weights<6>(square.codes[0] + step * kTileBytes);
    tiles_.template multiply_unsigned<0, 4, 6>();
    if (two_panels) load_weights<7>(square.codes[1] + step * kTileBytes);
    if (two_panels) tiles_.template multiply_unsigned<1, 4, 7>();
    if (two_tiles) load_rows<5>(x1);
    if (two_tiles) tiles_.template multiply_unsigned<2, 5, 6>();
    if (two_tiles && two_panels) tiles_.template multiply_unsigned<3, 5, 7>();
  }

  template <int kTile>
  [[gnu::always_inline]] inline void load_rows(const std::byte* from) {
    few_rows_ ? tiles_.template load<kTile>(from, kTileRowBytes) : tiles_.template load_once<kTile>(from, kTileRowBytes);
  }
  template <int kTile>
  [[gnu::always_inline]] inline void load_weights(const std::byte* from) {
    few_rows_ ? tiles_.template load_once<kTile>(from, kTileRowBytes) : tiles_.template load<kTile>(from, kTileRowBytes);
  }

  template <int kTile>
  [[gnu::always_inline]] inline void leave_tile(std::int32_t (&to)[kTileRows][kPanel]) {
    tiles_.template store<kTile>(to, kTileRowBytes);
    tiles_.template zero<kTile>();
  }

  // Adds the integer sums of a settled square to its floats, row after row.
  template <Settled kSettled>
  class RowAdder {
   public:
    static constexpr bool kWhole = kSettled != Settled::kAny;

    RowAdder(const GroupedMatmul& product, const Square& square, const std::int32_t (&from)[2][2][kTileRows][kPanel])
        : product_(product), square_(square), from_(from), kept_(square.first ? 0 : 0xFFFF),
          accumulated_(product.args_.accumulate ? 0xFFFF : 0), out_stride_(product.args_.out_stride) {
      if (square.steps != 0) begin_tile(0);
    }

    void begin_tile(int tile) {
      const Square::Rows& rows = square_.rows[tile];
      integers_ = from_[tile][0][0];
      scale_ = rows.x + product_.prepared_.scales + square_.group * kTileRows * 4;
      start_ = rows.x + product_.prepared_.starts + square_.group * kTileRows * 4;
      sums_[0] = rows.sums[0];
      sums_[1] = rows.sums[1];
      out_ = rows.out;
      left_ = rows.count;
    }

    [[gnu::always_inline]] inline void add_row() {
      if (kWhole || left_ > 0) {
        const __m512 x_scale = avx512::broadcast_float(scale_);
        const __m512i start = avx512::broadcast_int(start_);
        const __m512 first = add_panel<0>(x_scale, start);
        if constexpr (kSwiGlu) {
          const __m512 second = add_panel<1>(x_scale, start);
          if (ends()) {
            write<0>(avx512::swiglu(first, second));
          } else {
            _mm512_store_ps(sums_[0], first);
            _mm512_store_ps(sums_[1], second);
          }
        } else {
          leave<0>(first);
          if (kWhole || square_.two_panels) leave<1>(add_panel<1>(x_scale, start));
        }
      }
      integers_ += kPanel;
      scale_ += 4;
      start_ += 4;
      sums_[0] += kPanel;
      sums_[1] += kPanel;
      out_ += out_stride_;
      --left_;
    }

   private:
    // Whether it is the last group of its panels.
    bool ends() const { return kWhole ? kSettled != Settled::kGroup : square_.last; }

    template <int kIndex>
    [[gnu::always_inline]] inline __m512 add_panel(__m512 x_scale, __m512i start) const {
      const __m512i sum = _mm512_add_epi32(_mm512_load_si512(integers_ + kIndex * kTileRows * kPanel), start);
      const __m512 scale = _mm512_mul_ps(square_.scales[kIndex], x_scale);
      const __m512 before = kSettled == Settled::kWhole ? _mm512_setzero_ps() : _mm512_maskz_load_ps(kept_, sums_[kIndex]);
      return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, before);
    }

    template <int kIndex>
    [[gnu::always_inline]] inline void leave(__m512 y) const {
      ends() ? write<kIndex>(y) : _mm512_store_ps(sums_[kIndex], y);
    }

    template <int kIndex>
    [[gnu::always_inline]] inline void write(__m512 y) const {
      float* const out = out_ + kIndex * kPanel;
      if constexpr (kSettled == Settled::kWhole) return _mm512_storeu_ps(out, y);
      if constexpr (kWhole) {
        _mm512_storeu_ps(out, _mm512_mask_add_ps(y, accumulated_, y, _mm512_maskz_loadu_ps(accumulated_, out)));
      } else {
        const __mmask16 mask = square_.outputs[kIndex];
        _mm512_mask_storeu_ps(out, mask, _mm512_mask_add_ps(y, accumulated_ & mask, y, _mm512_maskz_loadu_ps(accumulated_ & mask, out)));
      }
    }

    const GroupedMatmul& product_;
    const Square& square_;
    const std::int32_t (&from_)[2][2][kTileRows][kPanel];
    const __mmask16 kept_;         // of the floats so far
    const __mmask16 accumulated_;  // of the output so far
    const std::int64_t out_stride_;
    const std::int32_t* integers_ = nullptr;
    const std::byte* scale_ = nullptr;  // the row's, of the group
    const std::byte* start_ = nullptr;
    float* sums_[2] = {};
    float* out_ = nullptr;
    int left_ = 0;  // rows of the tile
  };

  // Of the next weights' lines: few at a time, so that those that tiles wait for find a place between them.
  [[gnu::always_inline]] inline void fetch(std::int64_t lines) {
    for (int i = 0; i < 2 && fetches_; ++i) next_[i] = prefetch_lines<kSecondLevel>(next_[i], lines);
  }

  // Weights, and where the rows of the last group will be written.
  [[gnu::always_inline]] inline void prefetch(const Square& square, int step) {
    fetch(lines_of_step_ - 3 * lines_of_gap_);
    if (!square.last) return;
    for (int tile = 0; tile < (square.two_tiles ? 2 : 1); ++tile) {
      for (int i = step * 2; i < step * 2 + 2 && i < square.rows[tile].count; ++i) {
        prefetch_for_write(square.rows[tile].out + i * args_.out_stride);
        if (!kSwiGlu) prefetch_for_write(square.rows[tile].out + i * args_.out_stride + kPanel);
      }
    }
  }

  Tiles& tiles_;
  const MatmulArgs& args_;
  const PanelLayout layout_;
  const PanelTurns turns_;
  const PreparedTiles prepared_;
  const std::int64_t blocks_;
  const std::byte* next_[2] = {};                                  // of two panels, to be prefetched with each step,
  bool fetches_ = false;                                           // if there are any
  std::int64_t lines_of_step_ = 0;                                 // 64 bytes each
  std::int64_t lines_of_gap_ = 0;                                  // of these, after each product but the last
  bool few_rows_ = false;                                          // of the band: one pair of tiles
  std::int64_t count_ = 0;                                         // squares so far
  Square squares_[3];                                              // [turn]: the newest one, and what is stored and settled meanwhile
  alignas(64) std::int32_t integers_[2][2][2][kTileRows][kPanel];  // [turn][row tile][panel][row][output]
  alignas(64) float sums_[kSumTiles][kTileRows][kPanel];           // of a pass, [pair of row tiles][panel][row tile]
};

}  // namespace
}  // namespace braid::kernels::amx
