// Products of many 8-bit rows with weights of up to 8 bits. Two panels are expanded group after group for a band of rows (weight_group.h), so
// that what a group costs apart from its products is paid once for the band, and its codes come from the first-level cache. Float sums
// wait in memory from one group to the next. Same bits as matmul_quantized.cpp, which has the fewer rows.
//
// The two panels are neighbours, or one of gate and one of up, of whose sums SwiGLU is what is written (MatmulArgs::up).
//
// Limit: vpdpbusd; for each 8 of them two fma, or a vpmulld for each 8 or 4, take the same pipes (perf/README.md has the share reached).
#include "kernels/avx512/many_rows.h"
#include "kernels/avx512/weight_group.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::avx512 {
namespace {

constexpr std::int64_t kMostTileRows = 6;
constexpr std::int64_t kFewestTileRows = 4;  // of many rows in tiles of nearly equal height
constexpr std::int64_t kMostStretches = 4;
constexpr std::int64_t kBandTiles = 24;
static_assert((kManyRows + kMostTileRows - 1) / kMostTileRows * kFewestTileRows <= kManyRows);

using TileSums = __m512[kMostTileRows][kPanels];

// What all tiles have in common.
struct Shape {
  PanelLayout layout;
  PreparedLayout row;
  BlockForm form;
  std::int64_t blocks = 0;
  std::int64_t out_stride = 0;
  bool accumulate = false;
  bool past_caches = false;
  bool swiglu = false;
};

struct Tile {
  const std::byte* x = nullptr;  // the first prepared row
  float* out = nullptr;          // of that row and the first panel
  std::int64_t outputs[kPanels] = {};
  __m512 (*sums)[kPanels] = nullptr;  // [rows][kPanels], of the groups before
  // What memory is to bring meanwhile, in the panels after these: from each of some places so many lines with each K block.
  const std::byte* next[kMostStretches] = {};
  std::int64_t stretches = 1;
  std::int64_t next_lines = 0;
};

// `kFours` fours of inputs of one K block.
template <int kFours, int kRows>
[[gnu::always_inline]] inline void add_products(const std::byte* const (&codes)[kPanels], const std::byte* x, std::int64_t row_bytes,
                                                __m512i (&sum)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int four = 0; four < kFours; ++four) {
    const __m512i first = _mm512_load_si512(codes[0] + four * 64);
    const __m512i second = _mm512_load_si512(codes[1] + four * 64);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i values = broadcast_int(x + r * row_bytes + four * 4);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], first, values);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], second, values);
    }
  }
}

template <int kRows>
[[gnu::always_inline]] inline void load_starts(const std::byte* starts, std::int64_t row_bytes, __m512i (&sum)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = broadcast_int(starts + r * row_bytes);
}

// What memory is to bring meanwhile, with each K block.
[[gnu::always_inline]] inline void fetch_next(const Tile& tile, std::int64_t block) {
  for (std::int64_t line = block * tile.next_lines; line < (block + 1) * tile.next_lines; ++line) {
    for (std::int64_t s = 0; s < tile.stretches; ++s) prefetch_lines<kFirstLevel>(tile.next[s] + line * 64, 1);
  }
}

// Adds the blocks of a group, each with a scale of its own, to the float sums.
template <bool kMinimums, int kRows>
[[gnu::always_inline]] inline void add_blocks(const Shape& shape, const Group& group, const Tile& tile, __m512 (&acc)[kRows][kPanels]) {
  const std::int64_t row_bytes = shape.row.bytes;
  const std::byte* x = tile.x + group.begin * kBlockValues;
  const std::byte* starts = tile.x + shape.row.starts + group.begin * 4;
  const std::byte* x_scales = tile.x + shape.row.scales + group.begin * 4;
  const std::byte* x_sums = tile.x + shape.row.sums + group.begin * 4;
  const std::byte* codes[kPanels] = {group.codes[0], group.codes[1]};
  const Group::Block* block = group.blocks;
  for (std::int64_t b = 0; b < group.end - group.begin; ++b, ++block) {
    fetch_next(tile, b);
    __m512i sum[kRows][kPanels];
    load_starts(starts, row_bytes, sum);
    add_products<8>(codes, x, row_bytes, sum);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x_scale = broadcast_float(x_scales + r * row_bytes);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        const __m512 scaled = _mm512_fmadd_ps(_mm512_castsi512_ps(sum[r][p]), block->scales[p], block->magic[p]);
        acc[r][p] = _mm512_fmadd_ps(scaled, x_scale, acc[r][p]);
      }
      if constexpr (kMinimums) {
        const __m512 x_sum = broadcast_float(x_sums + r * row_bytes);
        for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_fmadd_ps(block->minimums[p], x_sum, acc[r][p]);
      }
    }
    codes[0] += kCodeBytes;
    codes[1] += kCodeBytes;
    x += kBlockValues;
    starts += 4;
    x_scales += 4;
    x_sums += 4;
  }
}

// The integer sums of a group. kParts: how many multipliers a K block has; none if a group has only its scale.
template <int kParts, int kRows>
[[gnu::always_inline]] inline void sum_group(const Shape& shape, const Group& group, const Tile& tile, __m512i (&total)[kRows][kPanels]) {
  const std::int64_t row_bytes = shape.row.bytes;
  const std::byte* x = tile.x + group.begin * kBlockValues;
  const std::byte* starts = tile.x + shape.row.starts;
  const std::byte* codes[kPanels] = {group.codes[0], group.codes[1]};
  if constexpr (kParts == 0) {
    load_starts(starts + group.begin / kWideGroupBlocks * 4, row_bytes, total);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) total[r][0] = total[r][1] = _mm512_setzero_si512();
    starts += group.begin * kParts * 4;
  }
  const __m512i(*multipliers)[kPanels] = group.multipliers;
  for (std::int64_t b = 0; b < group.end - group.begin; ++b, x += kBlockValues) {
    fetch_next(tile, b);
    if constexpr (kParts == 0) add_products<8>(codes, x, row_bytes, total);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part, ++multipliers, starts += 4) {
      constexpr int kFours = kParts == 0 ? 8 : 8 / kParts;
      __m512i sum[kRows][kPanels];
      load_starts(starts, row_bytes, sum);
      const std::byte* const of_part[kPanels] = {codes[0] + part * kFours * 64, codes[1] + part * kFours * 64};
      add_products<kFours>(of_part, x + part * kFours * 4, row_bytes, sum);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p) total[r][p] = _mm512_add_epi32(total[r][p], _mm512_mullo_epi32((*multipliers)[p], sum[r][p]));
      }
    }
    codes[0] += kCodeBytes;
    codes[1] += kCodeBytes;
  }
}

// Of types in Summing::kParts.
template <int kParts, int kRows>
void add_minimums(const Shape& shape, const Group& group, const std::byte* rows, __m512 (&acc)[kRows][kPanels]) {
  __m512i total[kRows][kPanels] = {};
#pragma GCC unroll 8
  for (int pair = 0; pair < kGroupBlocks * kParts / 2; ++pair) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i sums = broadcast_int(rows + r * shape.row.bytes + shape.row.sums + group.begin * kParts * 2 + pair * 4);
      for (int p = 0; p < kPanels; ++p) total[r][p] = _mm512_dpwssd_epi32(total[r][p], group.minimum_pairs[pair][p], sums);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 x_scale = broadcast_float(rows + r * shape.row.bytes + shape.row.scales + group.begin / kGroupBlocks * 4);
    for (int p = 0; p < kPanels; ++p)
      acc[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[r][p]), _mm512_mul_ps(group.minimum_scales[p], x_scale), acc[r][p]);
  }
}

// Adds a group with one integer sum to the float sums.
template <int kParts, bool kMinimums, int kRows>
[[gnu::always_inline]] inline void add_group(const Shape& shape, const Group& group, const Tile& tile, __m512 (&acc)[kRows][kPanels]) {
  __m512i total[kRows][kPanels];
  sum_group<kParts>(shape, group, tile, total);
  const std::int64_t index = group.begin / (kParts == 0 ? kWideGroupBlocks : kGroupBlocks);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 x_scale = broadcast_float(tile.x + r * shape.row.bytes + shape.row.scales + index * 4);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      acc[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[r][p]), _mm512_mul_ps(group.scales[p], x_scale), acc[r][p]);
    }
  }
  if constexpr (kMinimums) add_minimums<kParts>(shape, group, tile.x, acc);
}

template <int kRows>
[[gnu::always_inline]] inline void write(const Shape& shape, const Tile& tile, const __m512 (&acc)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float* const out = tile.out + r * shape.out_stride;
    if (shape.swiglu) {
      store_panel(out, tile.outputs[0], false, shape.past_caches, swiglu(acc[r][0], acc[r][1]));
    } else {
      for (int p = 0; p < kPanels; ++p) store_panel(out + p * kPanel, tile.outputs[p], shape.accumulate, shape.past_caches, acc[r][p]);
    }
  }
}

// Adds a group to the float sums of a tile; writes its results after the last one. kParts: multipliers of a K block, if not in
// Summing::kBlock.
template <Summing kSumming, int kParts, bool kMinimums, int kRows>
void multiply(const Shape& shape, const Group& group, const Tile& tile) {
  const bool last = group.end == shape.blocks;
  if (last && shape.accumulate) {
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPanels; ++p) prefetch_for_write(tile.out + r * shape.out_stride + p * kPanel);
    }
  }
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = group.begin == 0 ? _mm512_setzero_ps() : tile.sums[r][p];
  }
  if constexpr (kSumming == Summing::kBlock) {
    add_blocks<kMinimums>(shape, group, tile, acc);
  } else {
    add_group<kParts, kMinimums>(shape, group, tile, acc);
  }
  if (last) return write(shape, tile, acc);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) tile.sums[r][p] = acc[r][p];
  }
}

// The code of one form of weights.
struct Functions {
  void (*codes)(const BlockForm&, const PanelLayout&, const std::byte*, const Group&,
                std::byte*) = nullptr;  // null: they are bytes as they are
  void (*scales)(const BlockForm&, const PanelLayout&, const std::byte*, int, Group&) = nullptr;
  void (*multiply[kMostTileRows - kFewestTileRows + 1])(const Shape&, const Group&, const Tile&) = {};
};

Functions functions_for(const CodeForm& form) {
  return with_form(form, []<CodeForm kForm>() {
    constexpr Summing kSumming = kForm.summing;
    constexpr int kParts = kSumming == Summing::kParts ? kForm.parts : 0;
    Functions of{nullptr,
                 expand_scales<kForm>,
                 {multiply<kSumming, kParts, kForm.minimums, 4>, multiply<kSumming, kParts, kForm.minimums, 5>,
                  multiply<kSumming, kParts, kForm.minimums, 6>}};
    if constexpr (kForm.low_bits != 8) of.codes = expand_codes<kForm>;
    return of;
  });
}

class ManyRows {
 public:
  explicit ManyRows(const MatmulArgs& args) : args_(args), functions_(functions_for(block_form(args.weights->type)->codes)) {
    const PackedMatrix& w = *args.weights;
    shape_ = {panel_layout(w.type, w.inputs),
              prepared_layout(w.type, w.inputs),
              *block_form(w.type),
              w.inputs / kBlockValues,
              args.out_stride,
              args.accumulate,
              writes_past_caches(args),
              args.up != nullptr};
  }

  // A band's rows stay in the second-level cache while all of these panels go by.
  void multiply_panels(std::int64_t begin, std::int64_t end) {
    const std::int64_t tiles = (args_.rows + kMostTileRows - 1) / kMostTileRows;
    const std::int64_t bands = (tiles + kBandTiles - 1) / kBandTiles;
    const std::int64_t width = shape_.swiglu ? 1 : kPanels;
    for (std::int64_t band = 0; band < bands; ++band) {
      for (std::int64_t p = begin; p < end; p += width) {
        set_panels(p, end);
        multiply_band({band * tiles / bands, (band + 1) * tiles / bands, tiles}, args_.out + p * kPanel);
      }
    }
  }

 private:
  void set_panels(std::int64_t p, std::int64_t end) {
    const std::byte* const first = args_.weights->data + p * shape_.layout.bytes;
    const bool second = shape_.swiglu || p + 1 < end;
    panels_[0] = first;
    panels_[1] = shape_.swiglu ? args_.up->data + p * shape_.layout.bytes : second ? first + shape_.layout.bytes : first;
    tile_.outputs[0] = args_.weights->outputs - p * kPanel;
    tile_.outputs[1] = second ? tile_.outputs[0] - kPanel : 0;
  }

  void multiply_band(const RowRange& tiles, float* out) {
    begin_fetching(tiles.end - tiles.begin);
    for (group_.begin = 0; group_.begin < shape_.blocks; group_.begin = group_.end) {
      group_.end = group_end(shape_.form.codes, group_.begin, shape_.blocks);
      expand();
      for (std::int64_t t = tiles.begin; t < tiles.end; ++t) multiply_tile(t, tiles.count, sums_[t - tiles.begin], out);
    }
  }

  // What comes next is fetched by tile after tile, evenly: in order, or from four stretches side by side (KernelTable::side_by_side).
  void begin_fetching(std::int64_t tiles) {
    const std::int64_t lines = kPanels * shape_.layout.bytes / 64;
    tile_.stretches = args_.side_by_side ? kMostStretches : 1;
    stretch_ = (lines + tile_.stretches - 1) / tile_.stretches * 64;
    lines_of_block_ = (stretch_ / 64 + tiles * shape_.blocks - 1) / (tiles * shape_.blocks);
    fetched_ = 0;
  }

  void fetch_meanwhile() {
    const std::int64_t bytes = shape_.layout.bytes;
    for (std::int64_t s = 0; s < tile_.stretches; ++s) {
      const std::int64_t at = s * stretch_ + fetched_;
      const int p = at < bytes ? 0 : 1;
      tile_.next[s] = panels_[p] + (shape_.swiglu ? 1 : kPanels) * bytes + at - p * bytes;
    }
    tile_.next_lines = fetched_ < stretch_ ? lines_of_block_ : 0;
    fetched_ += tile_.next_lines * (group_.end - group_.begin) * 64;
  }

  void expand() {
    for (int p = 0; p < kPanels; ++p) {
      functions_.scales(shape_.form, shape_.layout, panels_[p], p, group_);
      if (functions_.codes != nullptr) {
        functions_.codes(shape_.form, shape_.layout, panels_[p], group_, codes_[p]);
        group_.codes[p] = codes_[p];
      } else {
        group_.codes[p] = codes_at(shape_.layout, panels_[p], group_.begin);
      }
    }
  }

  void multiply_tile(std::int64_t number, std::int64_t count, TileSums& sums, float* out) {
    const std::int64_t begin = number * args_.rows / count;
    const std::int64_t height = (number + 1) * args_.rows / count - begin;
    tile_.x = args_.prepared + begin * shape_.row.bytes;
    tile_.out = out + begin * args_.out_stride;
    tile_.sums = sums;
    fetch_meanwhile();
    functions_.multiply[height - kFewestTileRows](shape_, group_, tile_);
  }

  const MatmulArgs& args_;
  const Functions functions_;
  Shape shape_;
  const std::byte* panels_[kPanels] = {};
  Group group_;
  Tile tile_;
  std::int64_t stretch_ = 0;  // bytes of one place's part of the next panels
  std::int64_t fetched_ = 0;  // of each so far
  std::int64_t lines_of_block_ = 0;
  TileSums sums_[kBandTiles];
  alignas(64) std::byte codes_[kPanels][kMostGroupBlocks * kCodeBytes];
};

}  // namespace

void matmul_many_rows(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  ManyRows product(args);
  product.multiply_panels(panel_begin, panel_end);
  if (writes_past_caches(args)) _mm_sfence();
}

}  // namespace braid::kernels::avx512
