// Products of 8-bit activations with quantised weights that have integer scales (Summing::kParts) by tiles, for any implementation of the
// tile instructions; multiply_quantized() takes those of other types too.
//
// Weights are tiles of low and of high bytes (expand_weights.h), so a group of 256 inputs is one integer sum, and only then a float. One
// tile product is 16 rows by 64 inputs by 16 outputs in 16 cycles; a weight takes two of them. For each group of a pair of panels all
// rows pass by in pairs of tiles: sums 0 to 3 are (row tile, low or high), so that four loads feed four products.
//
// Tiles are left in the 16 gaps between a pair's products, in small portions, because the processor looks ahead no farther than about
// one pair: a pair's sums are stored while the next one begins, and become floats during the pair after that. A group's weights are
// expanded before its products, into a buffer that the first-level cache still holds.
//
// Of panels that are gate and up in turns (panel_turns.h) the sums of up become SwiGLU where they are settled last, of its own and of the
// gate's, which are settled before it and kept.
//
// Integer minimums times sums of activations are a tile product of bf16, exact since all of it are integers below 2^24, once for each pair
// of row tiles and group: by vectors they cost a third of a product of many rows.
//
// Limit: the products, at half of the instruction's peak (perf/README.md has the share reached).
#pragma once

#include "kernels/amx/expand_weights.h"
#include "kernels/amx/matmul_blocks.h"
#include "kernels/amx/matmul_grouped.h"
#include "kernels/amx/panel_turns.h"
#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/row_tiles.h"

namespace braid::kernels::amx {

constexpr std::int64_t kMostPrefetched = 512 << 10;  // of the next panels, into the second-level cache
constexpr std::int64_t kFewTiles = 4;                // up to here panels take turns with a group, and go one at a time
constexpr std::int64_t kChunkPanels = 8;             // that take turns
constexpr std::int64_t kMostNearBytes = 24 << 10;    // of prepared rows, which then stay in the first-level cache without turns
static_assert(kFewTiles * kChunkPanels <= kBandTiles);

// A group of one panel times one or two row tiles.
struct TilePair {
  struct Rows {
    const std::byte* x = nullptr;  // prepared
    float* sums = nullptr;         // [kTileRows][kPanel]
    const float* gate = nullptr;   // sums of the turn before, where SwiGLU of those and of these is the result
    float* out = nullptr;          // of the tile's first row
    int count = 0;                 // rows that the tile has
  };
  const ExpandedGroup* weights = nullptr;
  const GroupScales* scales = nullptr;
  std::int64_t begin = 0;  // K block
  int steps = 0;
  int tiles = 0;
  bool first = false;    // group of its panel
  bool written = false;  // the last group of its panel, whose floats are results
  bool whole = false;    // two whole tiles of rows: nothing to decide row by row
  __mmask16 outputs = 0;
  Rows rows[2];
};

// Where the floats of a pair go: of whole pairs to the sums, or in the panel's last group to the output, maybe as SwiGLU; of others as each
// row wants.
enum class Settling { kSums, kOutput, kSwiGlu, kAny };

// Sums of a pair: [row tile][low, high][row][output], and those of minimums, which are integers too.
struct PairSums {
  alignas(64) std::int32_t sums[2][2][kTileRows][kPanel];
  alignas(64) float minimums[2][kTileRows][kPanel];
};

namespace {  // this header is compiled for wide ISAs: nothing of it may be shared with other sources

// Once expanded, all forms of codes are multiplied alike. kParts: of a K block, which only Minimums::kInTile asks for.
template <Minimums kMinimums, int kParts, class Tiles>
class QuantizedMatmul {
 public:
  QuantizedMatmul(Tiles& tiles, const MatmulArgs& args, const QuantizedShape& shape, ExpandGroup expand)
      : tiles_(tiles), args_(args), shape_(shape), expand_(expand), turns_(args, shape.layout.bytes),
        prepared_(args.weights->type, args.weights->inputs) {}

  void run(const PanelSource& panels) {
    const std::int64_t count = row_tiles(args_.rows);
    const std::int64_t most = band_tiles(prepared_, count);
    tiles_.configure(tile_config(args_.rows < kTileRows ? args_.rows : kTileRows));
    for (PanelRange range; panels.next(panels.context, range);) {
      for (std::int64_t tile = 0; tile < count; tile += most)
        multiply_band({tile, tile + most < count ? tile + most : count}, turns_.range(range));
    }
    for (int i = 0; i < 2; ++i) {
      pairs_[count_ % 3] = TilePair{};
      multiply(pairs_[count_ % 3]);
    }
    tiles_.reset();
  }

 private:
  // Tiles of rows.
  struct Band {
    std::int64_t begin;
    std::int64_t end;

    std::int64_t count() const { return end - begin; }
  };

  void multiply_band(const Band& band, const PanelRange& range) {
    if (band.count() <= kFewTiles) {
      const std::int64_t most = band.count() * prepared_.bytes > kMostNearBytes ? kChunkPanels : turns_.fused() ? 2 : 1;
      for (std::int64_t p = range.begin; p < range.end; p += most) multiply_chunk(p, range.end - p < most ? range.end - p : most, band);
    } else {
      for (std::int64_t p = range.begin; p < range.end; p += kPanels) {
        const std::int64_t panels = range.end - p < kPanels ? range.end - p : kPanels;
        prefetch_panels(p + panels, kPanels, panels * ((band.count() + 1) / 2));
        for (std::int64_t begin = 0; begin < shape_.blocks; begin = shape_.group_end(begin)) multiply_group(p, panels, begin, band, 0);
      }
    }
  }

  // Few rows: one group of their activations stays in the first-level cache while the panels of a chunk pass by.
  void multiply_chunk(std::int64_t p, std::int64_t panels, const Band& band) {
    for (std::int64_t begin = 0; begin < shape_.blocks; begin = shape_.group_end(begin)) {
      const std::int64_t end = shape_.group_end(begin);
      const bool last = end == shape_.blocks;
      for (std::int64_t i = 0; i < panels; ++i) {
        prefetch_group(p + i + (last ? panels : 0), last ? 0 : end, (band.count() + 1) / 2);
        multiply_group(p + i, 1, begin, band, i * kFewTiles);
      }
    }
  }

  // The group that takes the same place of the chunk next: a third of it while this one is expanded, which takes about half of the time, and
  // the rest between products.
  void prefetch_group(std::int64_t panel, std::int64_t begin, std::int64_t pairs) {
    lines_of_block_ = 0;
    lines_of_step_ = 0;
    two_places_ = false;
    if (panel >= turns_.count()) return;
    next_[0] = group_at(shape_.layout, turns_.data(panel), begin);
    const std::int64_t blocks = shape_.group_end(begin) - begin;
    const std::int64_t steps = pairs * kGroupSteps;
    const PanelLayout& layout = shape_.layout;
    const std::int64_t lines = (begin < layout.last_group ? layout.group : layout.last_codes + blocks * layout.block_codes) / 64;
    lines_of_block_ = lines / blocks / 3;
    lines_of_step_ = (lines - lines_of_block_ * blocks + steps - 1) / steps;
  }

  // What is prefetched between products: the next panels, evenly.
  void prefetch_panels(std::int64_t panel, std::int64_t panels, std::int64_t pairs_of_group) {
    const std::int64_t bytes = panels * shape_.layout.bytes;
    const std::int64_t steps = (shape_.layout.last_group / kGroupBlocks + 1) * pairs_of_group * kGroupSteps;
    lines_of_block_ = 0;
    lines_of_step_ = 0;
    if (bytes > kMostPrefetched || panel >= turns_.count()) return;
    lines_of_step_ = (bytes / 64 + steps - 1) / steps;
    two_places_ = turns_.fused();
    next_[0] = turns_.data(panel);
    if (two_places_) next_[1] = turns_.data(panel + 1);
  }

  // Panels side by side, so that activations come from the first-level cache for the second one. `place` is that of their sums.
  void multiply_group(std::int64_t p, std::int64_t panels, std::int64_t begin, const Band& band, std::int64_t place) {
    set_ = (set_ + 1) % kSets;
    for (std::int64_t i = 0; i < panels; ++i) {
      next_[0] = expand_(shape_, turns_.data(p + i), begin, weights_[i], scales_[set_][i], next_[0], lines_of_block_);
    }
    const std::int64_t end = shape_.group_end(begin);
    for (std::int64_t tile = band.begin; tile < band.end; tile += 2) {
      for (std::int64_t i = 0; i < panels; ++i) {
        TilePair& pair = pairs_[count_ % 3];  // filled in its place, as squares are (matmul_grouped.h)
        pair.weights = &weights_[i];
        pair.scales = &scales_[set_][i];
        pair.begin = begin;
        pair.steps = static_cast<int>((end - begin + 1) / 2);
        pair.tiles = band.end - tile < 2 ? 1 : 2;
        pair.first = begin == 0;
        pair.written = end == shape_.blocks && turns_.writes(p + i);
        pair.outputs = avx512::first_lanes(args_.weights->outputs - turns_.first_output(p + i));
        for (int t = 0; t < 2; ++t)
          pair.rows[t] = t < pair.tiles ? rows_of(tile + t, place + tile + t - band.begin, p + i, i) : TilePair::Rows{};
        pair.whole = pair.tiles == 2 && pair.rows[1].count == kTileRows && pair.outputs == 0xFFFF;
        multiply(pair);
      }
    }
  }

  // `place` is that of the tile's sums, `i` the panel's among those that share a pass.
  TilePair::Rows rows_of(std::int64_t tile, std::int64_t place, std::int64_t panel, std::int64_t i) {
    const std::int64_t first = tile * kTileRows;
    const float* const before = i > 0 ? band_.sums[i - 1][place][0] : place >= kFewTiles ? band_.sums[i][place - kFewTiles][0] : nullptr;
    return {.x = args_.prepared + tile * prepared_.bytes,
            .sums = band_.sums[i][place][0],
            .gate = turns_.is_up(panel) ? before : nullptr,
            .out = args_.out + first * args_.out_stride + turns_.first_output(panel),
            .count = static_cast<int>(args_.rows - first < kTileRows ? args_.rows - first : kTileRows)};
  }

  // Multiplies `pair`, the newest, stores the sums of the one before, and adds those of the one before that to its floats.
  void multiply(const TilePair& pair) {
    const TilePair& settled = pairs_[(count_ + 1) % 3];
    const bool two_before = pairs_[(count_ + 2) % 3].tiles == 2;
    const bool straight = two_before && pair.tiles == 2 && pair.steps >= kGroupSteps;
    const bool swiglu = settled.written && turns_.fused();
    if (!settled.whole || (swiglu && !straight)) {
      multiply_beside<Settling::kAny, false>(pair, settled, two_before);
    } else if (!straight) {
      settled.written ? multiply_beside<Settling::kOutput, false>(pair, settled, two_before)
                      : multiply_beside<Settling::kSums, false>(pair, settled, two_before);
    } else if (swiglu) {
      multiply_beside<Settling::kSwiGlu, true>(pair, settled, true);
    } else {
      settled.written ? multiply_beside<Settling::kOutput, true>(pair, settled, true)
                      : multiply_beside<Settling::kSums, true>(pair, settled, true);
    }
    ++count_;
  }

  // kWhole: nothing is missing, as is nearly always so. Then this is straight code, since what is not a product, a row or a load between
  // two products costs as much time as these.
  template <Settling kSettling, bool kWhole>
  void multiply_beside(const TilePair& pair, const TilePair& settled, bool two_tiles_before) {
    const bool two_before = kWhole || two_tiles_before;
    const bool two = kWhole || pair.tiles == 2;
    PairSums& to = integers_[(count_ + 1) % 2];
    RowAdder<kSettling> rows(*this, settled, integers_[count_ % 2]);
    const std::byte* const x0 = pair.rows[0].x + pair.begin / 2 * kTileBytes;
    const std::byte* const x1 = pair.rows[1].x + pair.begin / 2 * kTileBytes;
    const ExpandedGroup* const weights = pair.weights;
#pragma GCC unroll 4
    for (int step = 0; step < kGroupSteps; ++step) {
      const bool some = kWhole || step < pair.steps;
      const bool leave = step == 0;
      const std::int64_t at = step * kTileBytes;
      if (step == kGroupSteps / 2) rows.begin_tile(1);
      if (leave && kMinimums == Minimums::kInTile) {
        begin_beside_minimums<kWhole>(pair, to, rows, two, two_before);
        prefetch(pair, step);
        continue;
      }
      if (some) {
        tiles_.template load<4>(x0 + at, kTileRowBytes);
        tiles_.template load<6>(weights->low + at, kTileRowBytes);
      }
      if (leave) leave_tile<0>(to.sums[0][0]);
      if (some) tiles_.template multiply_unsigned<0, 4, 6>();
      fill_gap(rows);
      if (some) tiles_.template load<7>(weights->high + at, kTileRowBytes);
      if (leave) leave_tile<1>(to.sums[0][1]);
      if (some) tiles_.template multiply_signed<1, 4, 7>();
      fill_gap(rows);
      if (some && two) tiles_.template load<5>(x1 + at, kTileRowBytes);
      if (leave && two_before) leave_tile<2>(to.sums[1][0]);
      if (some && two) tiles_.template multiply_unsigned<2, 5, 6>();
      fill_gap(rows);
      if (leave && two_before) leave_tile<3>(to.sums[1][1]);
      if (some && two) tiles_.template multiply_signed<3, 5, 7>();
      fill_gap(rows);
      prefetch(pair, step);
    }
    for (int step = kGroupSteps; step < pair.steps; ++step) multiply_alone(pair, x0, x1, step, two);
  }

  // A step beyond those of a whole group.
  [[gnu::always_inline]] inline void multiply_alone(const TilePair& pair, const std::byte* x0, const std::byte* x1, int step, bool two) {
    const std::int64_t at = step * kTileBytes;
    tiles_.template load<4>(x0 + at, kTileRowBytes);
    tiles_.template load<6>(pair.weights->low + at, kTileRowBytes);
    tiles_.template multiply_unsigned<0, 4, 6>();
    tiles_.template load<7>(pair.weights->high + at, kTileRowBytes);
    tiles_.template multiply_signed<1, 4, 7>();
    if (!two) return;
    tiles_.template load<5>(x1 + at, kTileRowBytes);
    tiles_.template multiply_unsigned<2, 5, 6>();
    tiles_.template multiply_signed<3, 5, 7>();
  }

  template <int kTile>
  [[gnu::always_inline]] inline void leave_tile(void* to) {
    tiles_.template store<kTile>(to, kTileRowBytes);
    tiles_.template zero<kTile>();
  }

  // The first step of a pair in another order, so that the minimums' sums of the pair before can be made in tiles 0 and 1 meanwhile.
  template <bool kWhole, class Rows>
  [[gnu::always_inline]] inline void begin_beside_minimums(const TilePair& pair, PairSums& to, Rows& rows, bool two, bool two_before) {
    constexpr int kX1 = kParts == 1 ? 4 : 5;  // the sums of both tiles' rows are one tile, or two (prepared_tiles.h)
    const TilePair& before = pairs_[(count_ + 2) % 3];
    const bool some = kWhole || pair.steps > 0;
    const bool any_before = kWhole || before.tiles > 0;
    const std::byte* const x = pair.rows[0].x + pair.begin / 2 * kTileBytes;
    const std::byte* const sums = before.rows[0].x + prepared_.sums + before.begin / kGroupBlocks * kParts * kTileBytes;
    leave_tile<0>(to.sums[0][0]);
    if (any_before) {
      tiles_.template load<4>(sums, kParts * kTileRowBytes);
      tiles_.template load<6>(before.scales->minimums_of(kParts, 0), kTileRowBytes);
      tiles_.template multiply_bf16<0, 4, 6>();
    }
    leave_tile<1>(to.sums[0][1]);
    if (any_before && two_before) {
      if (kX1 == 5) tiles_.template load<5>(sums + kTileRowBytes, kParts * kTileRowBytes);
      tiles_.template load<7>(before.scales->minimums_of(kParts, 1), kTileRowBytes);
      tiles_.template multiply_bf16<1, kX1, 7>();
    }
    rows.add_row();
    if (some && two) tiles_.template load<5>(pair.rows[1].x + pair.begin / 2 * kTileBytes, kTileRowBytes);
    if (some) tiles_.template load<6>(pair.weights->low, kTileRowBytes);
    if (two_before) leave_tile<2>(to.sums[1][0]);
    if (some && two) tiles_.template multiply_unsigned<2, 5, 6>();
    fill_gap(rows);
    if (some) tiles_.template load<7>(pair.weights->high, kTileRowBytes);
    if (two_before) leave_tile<3>(to.sums[1][1]);
    if (some && two) tiles_.template multiply_signed<3, 5, 7>();
    fill_gap(rows);
    if (some) tiles_.template load<4>(x, kTileRowBytes);
    leave_tile<0>(to.minimums[0]);
    if (some) tiles_.template multiply_unsigned<0, 4, 6>();
    fill_gap(rows);
    if (two_before) leave_tile<1>(to.minimums[1]);
    if (some) tiles_.template multiply_signed<1, 4, 7>();
    rows.add_row();
  }

  // Adds the integer sums of a settled pair to its floats, row after row.
  template <Settling kSettling>
  class RowAdder {
   public:
    RowAdder(const QuantizedMatmul& product, const TilePair& pair, const PairSums& from)
        : product_(product), pair_(pair), from_(from), kept_(pair.first ? 0 : 0xFFFF), accumulated_(product.args_.accumulate ? 0xFFFF : 0),
          out_stride_(product.args_.out_stride) {
      if (pair.tiles == 0) return;
      scale_ = pair.scales->scale;
      if constexpr (kMinimums == Minimums::kInTile) minimum_ = pair.scales->minimum;
      begin_tile(0);
    }

    void begin_tile(int tile) {
      const TilePair::Rows& rows = pair_.rows[tile];
      integers_ = from_.sums[tile][0][0];
      x_scale_ = rows.x + product_.prepared_.scales + pair_.begin / kGroupBlocks * kTileRows * 4;
      if constexpr (kMinimums == Minimums::kInTile) minimums_ = from_.minimums[tile][0];
      sum_ = rows.sums;
      gate_ = rows.gate;
      out_ = rows.out;
      if constexpr (kSettling != Settling::kAny) return;
      left_ = rows.count;
    }

    [[gnu::always_inline]] inline void add_row() {
      if (kSettling != Settling::kAny || left_ > 0) {
        const __m512i low = _mm512_load_si512(integers_);
        const __m512i high = _mm512_load_si512(integers_ + kTileRows * kPanel);
        const __m512 total = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
        const __m512 x_scale = avx512::broadcast_float(x_scale_);
        __m512 y = _mm512_fmadd_ps(total, _mm512_mul_ps(scale_, x_scale), _mm512_maskz_load_ps(kept_, sum_));
        if constexpr (kMinimums == Minimums::kInTile) {
          y = _mm512_fmadd_ps(_mm512_load_ps(minimums_), _mm512_mul_ps(minimum_, x_scale), y);
        }
        const bool to_sums = kSettling == Settling::kAny ? !pair_.written : kSettling == Settling::kSums;
        to_sums ? _mm512_store_ps(sum_, y) : write_row(result(y));
      }
      integers_ += kPanel;
      x_scale_ += 4;
      if constexpr (kMinimums == Minimums::kInTile) minimums_ += kPanel;
      sum_ += kPanel;
      if (kSettling == Settling::kSwiGlu || (kSettling == Settling::kAny && gate_ != nullptr)) gate_ += kPanel;
      --left_;
      if constexpr (kSettling != Settling::kSums) out_ += out_stride_;
    }

   private:
    [[gnu::always_inline]] inline __m512 result(__m512 y) const {
      const bool swiglu = kSettling == Settling::kSwiGlu || (kSettling == Settling::kAny && gate_ != nullptr);
      return swiglu ? avx512::swiglu(_mm512_load_ps(gate_), y) : y;
    }

    [[gnu::always_inline]] inline void write_row(__m512 y) const {
      if constexpr (kSettling == Settling::kAny) {
        _mm512_mask_storeu_ps(out_, pair_.outputs, add_output(accumulated_ & pair_.outputs, y));
      } else {
        _mm512_storeu_ps(out_, add_output(accumulated_, y));
      }
    }

    [[gnu::always_inline]] inline __m512 add_output(__mmask16 mask, __m512 y) const {
      return _mm512_mask_add_ps(y, mask, y, _mm512_maskz_loadu_ps(mask, out_));
    }

    const QuantizedMatmul& product_;
    const TilePair& pair_;
    const PairSums& from_;
    const __mmask16 kept_;         // of the floats so far
    const __mmask16 accumulated_;  // of the output so far
    const std::int64_t out_stride_;
    __m512 scale_ = _mm512_setzero_ps();
    __m512 minimum_ = _mm512_setzero_ps();
    const std::int32_t* integers_ = nullptr;
    const std::byte* x_scale_ = nullptr;  // the row's, of the group
    const float* minimums_ = nullptr;     // the row's sums of minimums
    float* sum_ = nullptr;
    const float* gate_ = nullptr;
    int left_ = 0;  // rows of the tile
    float* out_ = nullptr;
  };

  // The work beside one product.
  template <Settling kSettling>
  [[gnu::always_inline]] static inline void fill_gap(RowAdder<kSettling>& rows) {
    rows.add_row();
    rows.add_row();
  }

  // The next panels, and where the rows of a panel's last group will be written.
  [[gnu::always_inline]] inline void prefetch(const TilePair& pair, int step) {
    const std::byte*& next = next_[two_places_ ? step % 2 : 0];
    next = prefetch_lines<kSecondLevel>(next, lines_of_step_);
    if (!pair.written) return;
    for (int tile = 0; tile < pair.tiles; ++tile) {
      for (int i = step * 4; i < step * 4 + 4 && i < pair.rows[tile].count; ++i) {
        prefetch_for_write(pair.rows[tile].out + i * args_.out_stride);
      }
    }
  }

  Tiles& tiles_;
  const MatmulArgs& args_;
  const QuantizedShape& shape_;
  const ExpandGroup expand_;
  const PanelTurns turns_;
  const PreparedTiles prepared_;
  const std::byte* next_[2] = {};    // of the next panels, to be prefetched,
  bool two_places_ = false;          // in turns from both:
  std::int64_t lines_of_block_ = 0;  // 64 bytes each, with each K block that is expanded
  std::int64_t lines_of_step_ = 0;   // at each step of a pair
  std::int64_t count_ = 0;           // pairs so far
  TilePair pairs_[3];                // [turn]
  PairSums integers_[2];
  ExpandedGroup weights_[kPanels];
  // A group's scales are in use for two pairs more, which may be two groups.
  static constexpr int kSets = 3;
  GroupScales scales_[kSets][kPanels];
  int set_ = 0;
  BandSums band_;
};

}  // namespace

template <CodeForm kForm, class Tiles>
static void multiply_parts(Tiles& tiles, const MatmulArgs& args, const QuantizedShape& shape, const PanelSource& panels) {
  constexpr Minimums kMinimums = kForm.minimums ? Minimums::kInTile : Minimums::kNone;
  constexpr int kParts = kForm.minimums ? kForm.parts : 1;  // so that forms share what does not depend on it
  QuantizedMatmul<kMinimums, kParts, Tiles>(tiles, args, shape, expand_group<kForm, kMinimums>).run(panels);
}

template <class Tiles>
static void multiply_quantized(Tiles& tiles, const MatmulArgs& args, const PanelSource& panels) {
  const PackedMatrix& w = *args.weights;
  const QuantizedShape shape{*block_form(w.type), panel_layout(w.type, w.inputs), w.inputs / kBlockValues};
  with_form(shape.form.codes, [&]<CodeForm kForm>() {
    if constexpr (kForm.summing == Summing::kBlock) multiply_blocks<kForm>(tiles, args, shape, panels);
    if constexpr (kForm.summing == Summing::kParts) multiply_parts<kForm>(tiles, args, shape, panels);
    if constexpr (kForm.summing == Summing::kGroup) {
      if (args.up != nullptr) {
        GroupedMatmul<Tiles, true>(tiles, args).run(panels);
      } else {
        GroupedMatmul<Tiles, false>(tiles, args).run(panels);
      }
    }
  });
}

}  // namespace braid::kernels::amx
