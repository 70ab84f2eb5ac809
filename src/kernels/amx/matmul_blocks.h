// Products of 8-bit activations with weights that have a scale for 32 values (Summing::kBlock) by tiles, for any implementation of the tile
// instructions. Same bits as every other tier: each block's integer sum leaves the tiles and becomes a float by itself.
//
// A tile product is 16 rows by the 32 inputs of one block by 16 outputs, half as deep as tiles can be, since a deeper one would add up
// two blocks. For few rows codes of 8 bits are tiles as they are packed; otherwise they are expanded to bytes without their bias, a group of
// two panels at a time. Then each tile of rows passes by in steps of one panel and four blocks, whose activations stay in tiles for the second panel. While the
// products of a step are made, the sums of the one before become floats between them, which stay in registers for these four blocks. Sums
// go by a ring of four tiles in the first-level cache, so that nothing that is read has the address, modulo a page, of what was just stored.
//
// Limit: 48 vector operations that make floats of the sums of one product, which takes 16 cycles itself (perf/README.md has the share
// reached).
#pragma once

#include "kernels/amx/expand_weights.h"
#include "kernels/amx/panel_turns.h"
#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/row_tiles.h"
#include "kernels/avx512/weight_codes.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::amx {

constexpr int kStepBlocks = 4;
constexpr std::int64_t kFewRowTiles = 4;                   // up to here expanding codes that are bytes does not pay
constexpr std::int64_t kBlockCodes = 8 * kTileRowBytes;    // bytes of a block's codes, one each
constexpr std::int64_t kMostPrefetchedPanels = 512 << 10;  // bytes, into the second-level cache

// A group of one panel: codes without their bias, [block][four inputs][output][4], unless packed ones are taken, and what sums are
// multiplied by.
struct ExpandedBlocks {
  struct Scales {
    __m512 scale;
    __m512 magic;  // -kRoundMagic times the scale
    __m512 minimum;
  };
  alignas(64) std::byte codes[kMostGroupBlocks * kBlockCodes];
  Scales scales[kMostGroupBlocks];
};

namespace {  // this header is compiled for wide ISAs: nothing of it may be shared with other sources

// Tiles 0 and 1 are sums, 2 to 5 activations of `height` rows, 6 and 7 weights; one block deep.
inline TileConfig block_tile_config(std::int64_t height) {
  TileConfig config = tile_config(height);
  for (int tile = 2; tile < 6; ++tile) config.row_bytes[tile] = kBlockValues;
  for (int tile = 6; tile < 8; ++tile) config.rows[tile] = kBlockValues / 4;
  return config;
}

// A tile of rows times up to kStepBlocks blocks of one panel.
struct BlockStep {
  const std::byte* x = nullptr;       // prepared rows
  const std::byte* next_x = nullptr;  // codes that the step after the next one loads, if they are to be fetched
  const std::byte* codes = nullptr;
  const ExpandedBlocks::Scales* scales = nullptr;  // of the first block on, as the codes
  float* sums = nullptr;                           // [kTileRows][kPanel]
  const float* gate = nullptr;                     // the same of the gate's panel, where SwiGLU of both is the result
  float* out = nullptr;                            // of the first row
  std::int64_t begin = 0;                          // K block
  int blocks = 0;
  int rows = 0;
  bool loads = false;    // activations, which the next step of the same rows and blocks finds in tiles
  bool first = false;    // of its panel
  bool written = false;  // the last of its panel, whose floats are results
  bool whole = false;    // all rows and outputs are there
  __mmask16 outputs = 0;
};

// Where the floats of a step go: to the sums, to the output or as SwiGLU to it; or as rows and outputs want that are not all there.
enum class StepEnd { kSums, kOutput, kSwiGlu, kAny };

// Expands the group of K blocks from `begin` on; returns where its codes are. kPacked: they stay as they are, with their bias.
template <CodeForm kForm, bool kPacked>
const std::byte* expand_blocks(const QuantizedShape& shape, const std::byte* panel, std::int64_t begin, ExpandedBlocks& out) {
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(shape.form.table)));
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(shape.form.bias));
  const std::byte* const packed = codes_at(shape.layout, panel, begin);
  const std::byte* scale_bytes = scales_at(shape.layout, panel, begin);
  const std::int64_t count = shape.group_end(begin) - begin;
  for (std::int64_t b = 0; b < count; ++b, scale_bytes += shape.layout.block_scales) {
    ExpandedBlocks::Scales& scales = out.scales[b];
    scales.scale = avx512::load_scales(shape.form.scales, scale_bytes, 0);
    scales.magic = _mm512_mul_ps(scales.scale, _mm512_set1_ps(-kRoundMagic));
    if constexpr (kForm.minimums) scales.minimum = avx512::load_scales(shape.form.scales, scale_bytes, 1);
    if constexpr (!kPacked) {
      const std::byte* const block = packed + b * shape.layout.block_codes;
#pragma GCC unroll 8
      for (int g = 0; g < 8; ++g) {
        const __m512i codes = avx512::group_codes<kForm>(_mm512_load_si512(block + g % kForm.low_bits * 64), block, g, table);
        _mm512_store_si512(out.codes + b * kBlockCodes + g * 64, _mm512_sub_epi8(codes, bias));
      }
    }
  }
  return kPacked ? packed : out.codes;
}
using ExpandBlocks = const std::byte* (*)(const QuantizedShape&, const std::byte*, std::int64_t, ExpandedBlocks&);

// Once expanded, all forms of codes are multiplied alike. kStarts: codes bring their bias, so sums start where the activations say.
template <bool kMinimums, bool kStarts, class Tiles>
class BlockMatmul {
 public:
  BlockMatmul(Tiles& tiles, const MatmulArgs& args, const QuantizedShape& shape, ExpandBlocks expand)
      : tiles_(tiles), args_(args), shape_(shape), expand_(expand), turns_(args, shape.layout.bytes),
        prepared_(args.weights->type, args.weights->inputs) {}

  void run(const PanelSource& panels) {
    const std::int64_t count = row_tiles(args_.rows);
    const std::int64_t most = band_tiles(prepared_, count);
    tiles_.configure(block_tile_config(args_.rows < kTileRows ? args_.rows : kTileRows));
    for (PanelRange range; panels.next(panels.context, range);) {
      for (std::int64_t tile = 0; tile < count; tile += most)
        multiply_band({tile, tile + most < count ? tile + most : count}, turns_.range(range));
    }
    steps_[count_ % 2] = BlockStep{};
    multiply(steps_[count_ % 2]);
    tiles_.reset();
  }

 private:
  // Row tiles.
  struct Band {
    std::int64_t begin;
    std::int64_t end;
  };

  void multiply_band(const Band& band, const PanelRange& range) {
    for (std::int64_t p = range.begin; p < range.end; p += kPanels) {
      const std::int64_t panels = range.end - p < kPanels ? range.end - p : kPanels;
      prefetch_panels(p + panels, band.end - band.begin);
      for (std::int64_t begin = 0; begin < shape_.blocks; begin = shape_.group_end(begin)) {
        set_ = 1 - set_;
        for (std::int64_t i = 0; i < panels; ++i) codes_[i] = expand_(shape_, turns_.data(p + i), begin, weights_[set_][i]);
        for (std::int64_t tile = band.begin; tile < band.end; ++tile) multiply_group(p, panels, begin, tile, band);
      }
    }
  }

  // What is fetched with each product: the next panels, evenly.
  void prefetch_panels(std::int64_t panel, std::int64_t tiles) {
    const std::int64_t left = turns_.count() - panel;
    const std::int64_t bytes = (left < kPanels ? left : kPanels) * shape_.layout.bytes;
    next_lines_ = 0;
    two_places_ = turns_.fused();
    if (left <= 0 || bytes > kMostPrefetchedPanels) return;
    const std::int64_t products = tiles * shape_.blocks * kPanels;
    next_lines_ = (bytes / 64 + products - 1) / products;
    next_[0] = turns_.data(panel);
    if (two_places_) next_[1] = turns_.data(panel + 1);
  }

  void multiply_group(std::int64_t p, std::int64_t panels, std::int64_t begin, std::int64_t tile, const Band& band) {
    const std::int64_t end = shape_.group_end(begin);
    const std::int64_t place = tile - band.begin;  // of its sums
    const std::byte* const x = args_.prepared + tile * prepared_.bytes;
    const bool fetches = band.end - band.begin > kFewRowTiles;  // codes that the step after the next one loads
    const std::int64_t first_row = tile * kTileRows;
    for (std::int64_t b = begin; b < end; b += kStepBlocks) {
      const std::int64_t next = b + kStepBlocks;
      const std::byte* const next_x = next < end ? x + next / 2 * kTileBytes : x + prepared_.bytes + begin / 2 * kTileBytes;
      for (std::int64_t i = 0; i < panels; ++i) {
        BlockStep& step = steps_[count_ % 2];  // filled in its place, as squares of grouped types are (matmul_grouped.h)
        step.x = x;
        step.next_x = fetches && i == 0 ? next_x : nullptr;
        step.codes = codes_[i] + (b - begin) * kBlockCodes;
        step.scales = weights_[set_][i].scales + (b - begin);
        step.sums = band_.sums[i][place][0];
        step.gate = turns_.is_up(p + i) ? band_.sums[0][place][0] : nullptr;
        step.out = args_.out + first_row * args_.out_stride + turns_.first_output(p + i);
        step.begin = b;
        step.blocks = static_cast<int>(end - b < kStepBlocks ? end - b : kStepBlocks);
        step.rows = static_cast<int>(args_.rows - first_row < kTileRows ? args_.rows - first_row : kTileRows);
        step.loads = i == 0;
        step.first = b == 0;
        step.written = b + step.blocks == shape_.blocks && turns_.writes(p + i);
        step.outputs = avx512::first_lanes(args_.weights->outputs - turns_.first_output(p + i));
        step.whole = step.rows == kTileRows && step.outputs == 0xFFFF;
        multiply(step);
      }
    }
  }

  // Multiplies `step`, the newest, and adds the sums of the one before to its floats.
  void multiply(const BlockStep& step) {
    const BlockStep& settled = steps_[(count_ + 1) % 2];
    const bool straight = step.blocks == kStepBlocks && settled.blocks == kStepBlocks && settled.whole;
    if (!straight) {
      multiply_beside<StepEnd::kAny>(step, settled);
    } else if (!settled.written) {
      multiply_beside<StepEnd::kSums>(step, settled);
    } else if (turns_.fused()) {
      multiply_beside<StepEnd::kSwiGlu>(step, settled);
    } else {
      multiply_beside<StepEnd::kOutput>(step, settled);
    }
    ++count_;
  }

  // Unless it is kAny nothing of both steps is missing, as is nearly always so, and this is straight code.
  template <StepEnd kEnd>
  void multiply_beside(const BlockStep& step, const BlockStep& settled) {
    StepAdder<kEnd> adder(*this, settled);
    adder.begin();
    multiply_block<0, kEnd>(step, settled);
    adder.add(0);
    fetch(0);
    multiply_block<1, kEnd>(step, settled);
    adder.add(1);
    fetch(1);
    multiply_block<2, kEnd>(step, settled);
    adder.add(2);
    fetch(0);
    multiply_block<3, kEnd>(step, settled);
    adder.add(3);
    fetch(1);
    adder.end();
    if (step.written) fetch_results(step);
  }

  // Block kBlock of the step. Two products are in tiles at a time; what one of them leaves is the block two before this one.
  template <int kBlock, StepEnd kEnd>
  [[gnu::always_inline]] inline void multiply_block(const BlockStep& step, const BlockStep& settled) {
    constexpr bool kWhole = kEnd != StepEnd::kAny;
    constexpr int kSum = kBlock % 2;
    constexpr int kX = 2 + kBlock;
    constexpr int kW = 6 + kBlock % 2;
    constexpr int kLeft = (kBlock + 2) % kStepBlocks;
    const bool some = kWhole || kBlock < step.blocks;
    const bool leave = kWhole || kLeft < (kBlock < 2 ? settled : step).blocks;
    if (some) {
      const std::int64_t b = step.begin + kBlock;
      if (step.loads) tiles_.template load<kX>(step.x + b / 2 * kTileBytes + b % 2 * kBlockValues, kTileRowBytes);
      tiles_.template load<kW>(step.codes + kBlock * kBlockCodes, kTileRowBytes);
    }
    if (leave) tiles_.template store<kSum>(integers_[kLeft][0], kTileRowBytes);
    if (!some) return;
    tiles_.template zero<kSum>();
    if constexpr (kStarts) {
      tiles_.template multiply_unsigned<kSum, kX, kW>();
    } else {
      tiles_.template multiply_signed<kSum, kX, kW>();
    }
    if (step.next_x != nullptr) prefetch_lines<kFirstLevel>(step.next_x + kBlock * (kTileBytes / 2), kTileRows / 2);
  }

  // Adds the integer sums of a step to its floats.
  template <StepEnd kEnd>
  class StepAdder {
   public:
    [[gnu::always_inline]] inline StepAdder(const BlockMatmul& product, const BlockStep& step)
        : product_(product), step_(step), x_(step.x + step.begin * kTileRows * 4), kept_(step.first ? 0 : 0xFFFF),
          accumulated_(product.args_.accumulate ? 0xFFFF : 0) {}

    [[gnu::always_inline]] inline void begin() {
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        if (has(r)) acc_[r] = _mm512_maskz_load_ps(kept_, step_.sums + r * kPanel);
      }
    }

    [[gnu::always_inline]] inline void add(int b) {
      if (kEnd == StepEnd::kAny && b >= step_.blocks) return;
      const ExpandedBlocks::Scales& by = step_.scales[b];
      const std::byte* const x = x_ + b * kTileRows * 4;
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        if (!has(r)) continue;
        const __m512i start = kStarts ? avx512::broadcast_int(x + product_.prepared_.starts + r * 4) : _mm512_set1_epi32(kRoundMagicBits);
        const __m512i sum = _mm512_add_epi32(_mm512_load_si512(product_.integers_[b][r]), start);
        const __m512 scaled = _mm512_fmadd_ps(_mm512_castsi512_ps(sum), by.scale, by.magic);
        acc_[r] = _mm512_fmadd_ps(scaled, avx512::broadcast_float(x + product_.prepared_.scales + r * 4), acc_[r]);
        if constexpr (kMinimums)
          acc_[r] = _mm512_fmadd_ps(by.minimum, avx512::broadcast_float(x + product_.prepared_.sums + r * 4), acc_[r]);
      }
    }

    [[gnu::always_inline]] inline void end() {
      float* out = step_.out;
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r, out += product_.args_.out_stride) {
        if (!has(r)) continue;
        if (kEnd == StepEnd::kSums || (kEnd == StepEnd::kAny && !step_.written)) {
          _mm512_store_ps(step_.sums + r * kPanel, acc_[r]);
        } else if (kEnd == StepEnd::kSwiGlu || (kEnd == StepEnd::kAny && step_.gate != nullptr)) {
          write(out, avx512::swiglu(_mm512_load_ps(step_.gate + r * kPanel), acc_[r]));
        } else {
          write(out, acc_[r]);
        }
      }
    }

   private:
    // Whether the row is there.
    [[gnu::always_inline]] inline bool has(int r) const { return kEnd != StepEnd::kAny || (step_.blocks != 0 && r < step_.rows); }

    [[gnu::always_inline]] inline void write(float* out, __m512 y) const {
      const __mmask16 outputs = kEnd == StepEnd::kAny ? step_.outputs : 0xFFFF;
      const __mmask16 added = accumulated_ & outputs;
      y = _mm512_mask_add_ps(y, added, y, _mm512_maskz_loadu_ps(added, out));
      kEnd == StepEnd::kAny ? _mm512_mask_storeu_ps(out, outputs, y) : _mm512_storeu_ps(out, y);
    }

    const BlockMatmul& product_;
    const BlockStep& step_;
    const std::byte* const x_;     // from here on the places of the rows' scales, starts and sums, as for the tile's first block
    const __mmask16 kept_;         // of the floats so far
    const __mmask16 accumulated_;  // of the output so far
    __m512 acc_[kTileRows];
  };

  // Of the next panels; of gate and up from both.
  [[gnu::always_inline]] inline void fetch(int turn) {
    const std::byte*& next = next_[two_places_ ? turn : 0];
    next = prefetch_lines<kSecondLevel>(next, next_lines_);
  }

  // Where the rows of the panel's last step will be written.
  [[gnu::always_inline]] inline void fetch_results(const BlockStep& step) {
    for (int r = 0; r < step.rows; ++r) prefetch_for_write(step.out + r * args_.out_stride);
  }

  Tiles& tiles_;
  const MatmulArgs& args_;
  const QuantizedShape& shape_;
  const ExpandBlocks expand_;
  const PanelTurns turns_;
  const PreparedTiles prepared_;
  const std::byte* next_[2] = {};  // of the next panels, to be prefetched,
  bool two_places_ = false;        // in turns from both:
  std::int64_t next_lines_ = 0;    // 64 bytes each, with each product
  std::int64_t count_ = 0;         // steps so far
  BlockStep steps_[2];             // [turn]
  int set_ = 0;                    // of weights: scales of a group's last step are in use while the next group is expanded
  const std::byte* codes_[kPanels] = {};
  alignas(64) std::int32_t integers_[kStepBlocks][kTileRows][kPanel];  // [block]
  ExpandedBlocks weights_[2][kPanels];
  BandSums band_;
};

}  // namespace

template <CodeForm kForm, class Tiles>
static void multiply_blocks(Tiles& tiles, const MatmulArgs& args, const QuantizedShape& shape, const PanelSource& panels) {
  if constexpr (kForm.low_bits == 8) {
    if (row_tiles(args.rows) <= kFewRowTiles)
      return BlockMatmul<kForm.minimums, true, Tiles>(tiles, args, shape, expand_blocks<kForm, true>).run(panels);
  }
  BlockMatmul<kForm.minimums, false, Tiles>(tiles, args, shape, expand_blocks<kForm, false>).run(panels);
}

}  // namespace braid::kernels::amx
