// Products of 8-bit activations with weights of up to 8 bits by vpmaddubsw, exactly:
//   8-bit codes, stored or from a table: two products of unsigned ones overflow 16 bits, so the sign moves from the weight to the
//                activation: |w| * (x sign w), at most 2 * 128 * 127, then vpmaddwd to 32 bits
//   fewer bits   as many groups as fit 16 bits are summed there and widened once: 2 * 63 * 127 twice, 2 * 31 * 127 four times,
//                2 * 15 * 127 eight times
// A tile is kRows rows by one panel of two vectors.
#include <kernels/avx2/simd.h>
#include <kernels/avx2/tier.h>
#include <kernels/cache_hints.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx2 {
namespace {

constexpr int kMostRows = 4;
constexpr std::int64_t kPrefetchBytes = 4096;  // ahead of a single row, which runs at the speed of memory

struct Tile {
  const std::byte* panel;
  PanelLayout layout;
  const std::byte* x;  // kRows prepared rows
  PreparedLayout row;
  std::int64_t blocks;
  ScaleForm scales;
  bool minimum;
  const std::uint8_t* table;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  bool past_caches;
};

inline __m256i load(const std::byte* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }

// Bits of group g from its plane's vector, moved up by `up` within each byte.
template <int kBits>
[[gnu::always_inline]] inline __m256i plane_bits(__m256i packed, int g, int up) {
  if constexpr (kBits == 8) {
    return packed;
  } else {
    const int shift = g / kBits * kBits - up;
    const __m256i moved = shift > 0 ? _mm256_srli_epi16(packed, shift) : shift < 0 ? _mm256_slli_epi16(packed, -shift) : packed;
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(((1 << kBits) - 1) << up)));
  }
}

// The codes of group g for outputs 0 to 7 or 8 to 15.
template <CodeForm kForm>
[[gnu::always_inline]] inline __m256i group_codes(const std::byte* block, int g, int half, __m256i table) {
  __m256i codes = plane_bits<kForm.low_bits>(load(block + g % kForm.low_bits * 64 + half * 32), g, 0);
  if constexpr (kForm.table) codes = _mm256_shuffle_epi8(table, codes);
  if constexpr (kForm.high_bits != 0) {
    const __m256i high = load(block + (kForm.low_bits + g % kForm.high_bits) * 64 + half * 32);
    codes = _mm256_or_si256(codes, plane_bits<kForm.high_bits>(high, g, kForm.low_bits));
  }
  return codes;
}

// The integer sums of one part of a K block, from signed codes.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void sum_signed(const Tile& tile, const std::byte* codes, std::int64_t b, __m256i table, __m256i (&sum)[kRows][2]) {
  const std::byte* x = tile.x + b * kBlockValues;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i flip = _mm256_set1_epi8(-128);  // the bias
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i weight = _mm256_xor_si256(group_codes<kForm>(codes, g, half, table), flip);
      const __m256i size = _mm256_abs_epi8(weight);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i four = broadcast_int(x + r * tile.row.bytes + g * 4);
        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(four, weight));
        sum[r][half] = _mm256_add_epi32(sum[r][half], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
}

// The integer sums of one part of a K block, from unsigned codes of up to 6 bits.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void sum_unsigned(const Tile& tile, const std::byte* codes, std::int64_t b, int part, __m256i (&sum)[kRows][2]) {
  constexpr int kGroups = 8 / kForm.parts;
  constexpr int kBits = kForm.low_bits + kForm.high_bits;
  constexpr int kRun = kBits == 6 ? 2 : kBits == 5 ? 4 : kGroups;  // groups that fit 16 bits
  const std::byte* x = tile.x + b * kBlockValues;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = sum[r][1] = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + (b * kForm.parts + part) * 4);
  }
#pragma GCC unroll 4
  for (int run = 0; run < kGroups / kRun; ++run) {
    __m256i pairs[kRows][2];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) pairs[r][0] = pairs[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < kRun; ++i) {
      const int g = part * kGroups + run * kRun + i;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m256i weight = group_codes<kForm>(codes, g, half, _mm256_setzero_si256());
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m256i four = broadcast_int(x + r * tile.row.bytes + g * 4);
          pairs[r][half] = _mm256_add_epi16(pairs[r][half], _mm256_maddubs_epi16(weight, four));
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        sum[r][half] = _mm256_add_epi32(sum[r][half], _mm256_madd_epi16(pairs[r][half], _mm256_set1_epi16(1)));
      }
    }
  }
}

// The scales of a K block, or its minimums (`kind` 0 or 1), where one fits 32 values; for outputs 0 to 7 or 8 to 15.
inline __m256 load_scales(const Tile& tile, std::int64_t b, int kind, int half) {
  const std::byte* scales = scales_at(tile.layout, tile.panel, b);
  if (tile.scales == ScaleForm::kF16) return load_halves(scales + kind * kPanel * 2 + half * 16);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + half * 16));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// The f16 scales or minimums of K block b's group, in ScaleForm::kSub.
inline __m256 load_supers(const Tile& tile, std::int64_t b, int kind, int half) {
  return load_halves(group_at(tile.layout, tile.panel, b) + kind * kPanel * 2 + half * 16);
}

// The int8 scales or minimums of one part.
template <int kParts>
[[gnu::always_inline]] inline __m256i load_subs(const Tile& tile, std::int64_t b, int part, int kind, int half) {
  const bool nibbles = kParts == 2 && tile.layout.nibbles;
  const std::byte* scales = scales_at(tile.layout, tile.panel, b);
  const std::byte* subs = scales + (nibbles ? part : kind * kParts + part) * kPanel + half * 8;
  if (nibbles) {
    const __m256i both = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(subs)));
    return kind == 0 ? _mm256_and_si256(both, _mm256_set1_epi32(15)) : _mm256_srli_epi32(both, 4);
  }
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(subs)));
}

// The scale of a group, and what makes multipliers of its blocks' scales.
struct GroupScale {
  __m256 scale;
  __m256 inverse;
};

inline GroupScale group_scale(const Tile& tile, std::int64_t begin, std::int64_t end, int half) {
  if (tile.scales == ScaleForm::kSub || tile.scales == ScaleForm::kGroup) return {load_supers(tile, begin, 0, half), _mm256_setzero_ps()};
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 amax = _mm256_setzero_ps();
  for (std::int64_t b = begin; b < end; ++b) amax = _mm256_max_ps(_mm256_and_ps(load_scales(tile, b, 0, half), magnitude), amax);
  const __m256 most = _mm256_set1_ps(kMostMultiplier);
  const __m256 usable = _mm256_cmp_ps(amax, _mm256_set1_ps(kSmallestAmax), _CMP_GE_OQ);
  return {_mm256_div_ps(amax, most), _mm256_and_ps(usable, _mm256_div_ps(most, amax))};
}

// Adds one part of a K block to the integer sums of its group.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_part(const Tile& tile, const std::byte* codes, std::int64_t b, int part, __m256i table,
                                            const GroupScale (&group)[2], __m256i (&total)[kRows][2]) {
  __m256i sum[kRows][2];
  if constexpr (kForm.low_bits == 8 || kForm.table) {
    sum_signed<kForm, kRows>(tile, codes, b, table, sum);
  } else {
    sum_unsigned<kForm, kRows>(tile, codes, b, part, sum);
  }
  if constexpr (kForm.grouped) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      for (int half = 0; half < 2; ++half) total[r][half] = _mm256_add_epi32(total[r][half], sum[r][half]);
    }
    return;
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m256i multipliers = tile.scales == ScaleForm::kSub
                                    ? load_subs<kForm.parts>(tile, b, part, 0, half)
                                    : _mm256_cvtps_epi32(_mm256_mul_ps(load_scales(tile, b, 0, half), group[half].inverse));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      total[r][half] = _mm256_add_epi32(total[r][half], _mm256_mullo_epi32(multipliers, sum[r][half]));
    }
  }
}

// Adds the minimums of the group [begin, end) to the float sums of outputs 0 to 7 or 8 to 15.
template <int kParts, int kRows>
inline void add_minimums(const Tile& tile, std::int64_t begin, std::int64_t end, int half, __m256 (&acc)[kRows][2]) {
  if (tile.scales != ScaleForm::kSub) {
    for (std::int64_t b = begin; b < end; ++b) {
      const __m256 minimum = load_scales(tile, b, 1, half);
      for (int r = 0; r < kRows; ++r) {
        const __m256 x_sum = broadcast_float(tile.x + r * tile.row.bytes + tile.row.sums + b * 4);
        acc[r][half] = _mm256_fmadd_ps(minimum, x_sum, acc[r][half]);
      }
    }
    return;
  }
  const __m256 minimum = load_supers(tile, begin, 1, half);
  for (int r = 0; r < kRows; ++r) {
    const std::byte* row = tile.x + r * tile.row.bytes;
    __m256i total = _mm256_setzero_si256();
    for (std::int64_t part = begin * kParts; part < end * kParts; part += 2) {
      const __m256i first = load_subs<kParts>(tile, part / kParts, 0, 1, half);
      const __m256i second = load_subs<kParts>(tile, (part + 1) / kParts, kParts - 1, 1, half);
      const __m256i pair = _mm256_or_si256(first, _mm256_slli_epi32(second, 16));
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pair, broadcast_int(row + tile.row.sums + part * 2)));
    }
    const __m256 scale = _mm256_mul_ps(minimum, broadcast_float(row + tile.row.scales + begin / kGroupBlocks * 4));
    acc[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), scale, acc[r][half]);
  }
}

// Adds the group of K blocks [begin, end) to the float sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_group(const Tile& tile, std::int64_t begin, std::int64_t end, __m256i table,
                                             __m256 (&acc)[kRows][2]) {
  const GroupScale group[2] = {group_scale(tile, begin, end, 0), group_scale(tile, begin, end, 1)};
  __m256i total[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) total[r][0] = total[r][1] = _mm256_setzero_si256();
  const std::byte* codes = codes_at(tile.layout, tile.panel, begin);
  if constexpr (kRows == 1) prefetch_lines<kFirstLevel>(group_at(tile.layout, tile.panel, begin) + kPrefetchBytes, tile.layout.codes / 64);
  for (std::int64_t b = begin; b < end; ++b, codes += tile.layout.block_codes) {
    if constexpr (kRows == 1) prefetch_lines<kFirstLevel>(codes + kPrefetchBytes, kForm.low_bits + kForm.high_bits);
    add_part<kForm, kRows>(tile, codes, b, 0, table, group, total);
    if constexpr (kForm.parts == 2) add_part<kForm, kRows>(tile, codes, b, 1, table, group, total);
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + begin / blocks_of_group(kForm) * 4);
      acc[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[r][half]), _mm256_mul_ps(group[half].scale, scale), acc[r][half]);
    }
    if (tile.minimum) add_minimums<kForm.parts, kRows>(tile, begin, end, half, acc);
  }
}

template <CodeForm kForm, int kRows>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m256i table = _mm256_setzero_si256();
  if constexpr (kForm.table) table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile.table)));
  __m256 acc[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (std::int64_t begin = 0; begin < tile.blocks; begin = group_end(kForm, begin, tile.blocks)) {
    add_group<kForm, kRows>(tile, begin, group_end(kForm, begin, tile.blocks), table, acc);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    store_panel(tile.out + r * tile.out_stride, tile.outputs, tile.accumulate, tile.past_caches, acc[r][0], acc[r][1]);
  }
}

using Multiply = void (*)(const Tile&);
using Tiles = Multiply[kMostRows];

// [rows - 1]
template <CodeForm kForm>
constexpr Tiles kTiles = {multiply<kForm, 1>, multiply<kForm, 2>, multiply<kForm, 3>, multiply<kForm, 4>};

const Tiles& tiles_of(const CodeForm& form) {
  switch (form.low_bits * 4 + form.high_bits) {
    case 8 * 4:
      return form.grouped ? kTiles<kCodes8Grouped> : kTiles<kCodes8>;
    case 4 * 4:
      return form.table ? kTiles<kCodes4Table> : kTiles<kCodes4>;
    case 4 * 4 + 1:
      return kTiles<kCodes5>;
    case 4 * 4 + 2:
      return kTiles<kCodes6>;
    case 2 * 4:
      return kTiles<kCodes2>;
    default:
      return kTiles<kCodes3>;
  }
}

// All rows times one panel, the rows in tiles of nearly equal height.
void multiply_panel(const Tiles& tiles, Tile tile, std::int64_t rows) {
  for (std::int64_t count = (rows + kMostRows - 1) / kMostRows; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    tiles[height - 1](tile);
    tile.x += height * tile.row.bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const Tiles& tiles = tiles_of(form.codes);
  Tile tile{};
  tile.layout = panel_layout(w.type, w.inputs);
  tile.row = prepared_layout(w.type, w.inputs);
  tile.x = args.prepared;
  tile.blocks = w.inputs / kBlockValues;
  tile.scales = form.scales;
  tile.minimum = form.minimum;
  tile.table = form.table;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  tile.past_caches = writes_past_caches(args);
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panel(tiles, tile, args.rows);
  }
  if (tile.past_caches) _mm_sfence();
}

}  // namespace braid::kernels::avx2
