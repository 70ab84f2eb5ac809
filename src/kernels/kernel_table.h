// The arithmetic of one instruction-set tier, as a table of function pointers that is constant after selection.
//
// Every function is pure and noexcept: ranges in, no allocation, no threads. The numerics contract: each output element is reduced
// in an order that depends on the shapes of the weights and on the position in the context only, never on the number of rows, on
// the range a thread was given, or on slicing. scalar/ is the specification; all tiers give the same bits unless a function says
// otherwise.
#pragma once

#include "kernels/low_rank.h"
#include "kernels/recurrence.h"
#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

enum class Isa { kScalar, kNeon, kAvx2, kAvx512, kAmx };

// Keys and values in the pool. kInt8: codes of [-127, 127] with an f16 scale for each token, KV head and group of kKvGroup values.
enum class KvType { kF32, kF16, kBF16, kInt8 };
inline constexpr std::int32_t kKvGroup = 64;  // the last group of a head may be shorter

// A weight matrix [outputs, inputs] in the layout of the tier that packed it. The memory belongs to the caller.
// Outputs are grouped in panels of kPanel, the last one padded with zeros, so a range of outputs starts at a panel.
inline constexpr std::int32_t kPanel = 16;
struct PackedMatrix {
  WeightType type = WeightType::kF32;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  const std::byte* data = nullptr;  // 64-byte aligned
  std::uint32_t number = 0;         // which of its model's matrices it is, counted from 1; kernels do not look at it

  std::int64_t panels() const { return (outputs + kPanel - 1) / kPanel; }
};

// Rows [begin, end) of the `count` that one product takes.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count = 0;
};

// y[row, o] = sum_i x[row, i] * w[o, i]
struct MatmulArgs {
  const PackedMatrix* weights = nullptr;
  const std::byte* prepared = nullptr;  // `rows` rows made by prepare_rows for weights->type
  std::int64_t rows = 0;
  float* out = nullptr;  // [rows, out_stride]
  std::int64_t out_stride = 0;
  bool accumulate = false;  // adds to `out` (the residual stream) instead of storing
  // A hint: `out` is larger than a core's caches and read late. Whole lines are then written past the caches, so that nothing is read
  // for them and nothing is pushed out. Ignored where results accumulate, where rows are not 64-byte aligned, by tiles and by scalar code.
  bool past_caches = false;
  bool side_by_side = true;  // a hint: KernelTable's
  // Of the shape and type of `weights`, only where KernelTable::fuses_swiglu. Then weights are those of the gate, and the result is
  // silu(y of the gate) * (y of up), the same bits as by swiglu.
  const PackedMatrix* up = nullptr;
};

// Where a product gets the panels from whose outputs it is to compute.
struct PanelRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
struct PanelSource {
  bool (*next)(void* context, PanelRange& range) = nullptr;  // false: there are no more
  void* context = nullptr;
};

// The bytes of one layer of the paged pool. Within one block and KV head, keys are stored [head_dim, block_tokens] (transposed, so
// that scores vectorise over tokens) and values [block_tokens, head_dim]; kBF16 in pairs, [head_dim / 2, block_tokens, 2] and
// [block_tokens / 2, head_dim, 2], which are tiles of the AMX tier (kv_order.h), its values finite; for kInt8 the f16 scales of the keys
// and then those of the values follow, each [groups, block_tokens]. With `latent` the keys are the values too: one copy of them is stored,
// as values are.
struct KvLayer {
  std::byte* base = nullptr;       // key bytes of block 0, KV head 0
  std::size_t block_stride = 0;    // bytes from a block to the next
  std::size_t head_stride = 0;     // bytes from a KV head to the next within a block
  std::size_t value_offset = 0;    // bytes from a head's keys to its values; 0 with `latent`
  std::size_t scale_offset = 0;    // kInt8: bytes from a head's keys to its scales
  std::int32_t block_tokens = 16;  // 8, 16, 32 or 64
  std::int32_t head_dim = 0;
  std::int32_t kv_heads = 0;
  KvType type = KvType::kF16;
  bool latent = false;
};

// One query row: the token at `position` of a sequence attends to the positions up to its own that AttentionArgs lets it see.
struct AttentionRow {
  // Block table of the sequence, up to `position`. A block of which the row sees nothing may be absent: -1, and it is not read.
  const std::int32_t* blocks = nullptr;
  std::int32_t position = 0;
};

// A row at position p sees the position t <= p when window is 0, or t > p - window, or t < sink. That depends on positions only, so
// a block may be given up as soon as no later row can see any of its positions.
struct AttentionArgs {
  const KvLayer* kv = nullptr;
  const AttentionRow* rows = nullptr;  // rows of one sequence are adjacent and in order of position
  const float* queries = nullptr;      // [rows, query_stride]: heads * head_dim used
  float* out = nullptr;                // [rows, out_stride]
  std::int64_t query_stride = 0;
  std::int64_t out_stride = 0;
  std::int32_t heads = 0;   // query heads; a multiple of kv->kv_heads
  std::int32_t window = 0;  // positions a row sees, its own the last one; 0: all
  std::int32_t sink = 0;    // with a window: leading positions that every row sees
  float scale = 1.0F;       // usually 1 / sqrt(head_dim)
  float score_cap = 0.0F;   // scaled scores become cap * tanh(score / cap); 0: they stay
  // [heads], ALiBi (Press et al. 2022): the score of a query at p and a key at t becomes fma(slope, t - p, score); null: it stays.
  const float* slopes = nullptr;
  // [heads]: a score that every query of a head has beside those of its positions, and whose value is zeros; null: there is none.
  const float* sinks = nullptr;
  // Scratch of attention_scratch_bytes() for the calling thread.
  std::byte* scratch = nullptr;
};

// What positions add up to for one query: floats [top, total, 14 unused, values of head_dim padded to 16], 64-byte aligned. `top` is the
// largest score, `total` the sum of exp(score - top), `values` the sum of exp(score - top) * value.
inline constexpr std::int32_t kPartHeader = 16;

struct KernelTable {
  Isa isa = Isa::kScalar;
  const char* name = "scalar";
  KvType kv_type = KvType::kF16;  // what keys and values are unless something else is asked for
  // Bytes of a product's results from which on MatmulArgs::past_caches pays: 256 rows of a small model's gate or up, 8 rows of its logits.
  std::int64_t large_results = 3 << 19;
  // Whether this processor reads memory faster from several places at once than in order: Intel's do, AMD's do not (perf/README.md).
  bool side_by_side = true;

  // --- weights -------------------------------------------------------------------------------------------------------------
  std::size_t (*packed_bytes)(WeightType type, std::int64_t outputs, std::int64_t inputs) noexcept = nullptr;
  // Packs stored rows (as in the file, `stored` points at row 0) of panels [panel_begin, panel_end) into `packed`.
  void (*pack)(WeightType type, const std::byte* stored, std::int64_t outputs, std::int64_t inputs, std::byte* packed,
               std::int64_t panel_begin, std::int64_t panel_end) noexcept = nullptr;
  // Row `output` of a packed matrix as floats: embedding look-up.
  void (*unpack_row)(const PackedMatrix& weights, std::int64_t output, float* out) noexcept = nullptr;

  // --- matrix products -----------------------------------------------------------------------------------------------------
  // Bytes of the prepared activation rows of one product: int8 with a scale per group for quantised weights, float otherwise.
  std::size_t (*prepared_bytes)(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept = nullptr;
  // Prepares the rows of a range, of which `x` holds the first one, in their places of `prepared`. Threads may share the rows out.
  void (*prepare_rows)(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                       std::byte* prepared) noexcept = nullptr;
  // Computes the outputs of one range of panels after the other, tiles without a stop between them.
  void (*matmul)(const MatmulArgs& args, const PanelSource& panels) noexcept = nullptr;

  // Whether a product of so many rows takes MatmulArgs::up. Null: none does.
  bool (*fuses_swiglu)(WeightType type, std::int64_t rows) noexcept = nullptr;

  // --- the rest of a step --------------------------------------------------------------------------------------------------
  // out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]
  void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) noexcept = nullptr;
  // out[i] = (x[i] - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight[i] + bias[i]
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon, float* out) noexcept = nullptr;
  // Rotates `heads` heads of head_dim values in place. cos and sin: [rotated / 2] for this row's position. `interleaved` pairs
  // (2i, 2i+1) as llama's GGUF files want; otherwise (i, i + rotated / 2) as NeoX and Qwen do. Values past `rotated` stay.
  void (*rope)(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t rotated, const float* cos, const float* sin,
               bool interleaved) noexcept = nullptr;
  // out[i] = silu(gate[i]) * up[i]
  void (*swiglu)(const float* gate, const float* up, std::int64_t n, float* out) noexcept = nullptr;
  // out[i] = gelu(gate[i]) * up[i], with numerics.h's gelu
  void (*geglu)(const float* gate, const float* up, std::int64_t n, float* out) noexcept = nullptr;
  // out[i] = gelu(x[i])
  void (*gelu)(const float* x, std::int64_t n, float* out) noexcept = nullptr;
  // x[i] = cap * tanh(x[i] / cap)
  void (*soft_cap)(float* x, std::int64_t n, float cap) noexcept = nullptr;
  void (*add)(float* x, const float* y, std::int64_t n) noexcept = nullptr;  // x += y (biases)

  // --- layers with a state (recurrence.h) ----------------------------------------------------------------------------------
  void (*convolve)(const ConvolutionArgs& args, std::int64_t begin, std::int64_t end) noexcept = nullptr;  // these channels
  void (*selective_scan)(const SelectiveScanArgs& args) noexcept = nullptr;
  void (*delta_rule)(const DeltaRuleArgs& args) noexcept = nullptr;

  // --- adapters (low_rank.h) -----------------------------------------------------------------------------------------------
  void (*column_sums)(const ColumnSumsArgs& args, std::int64_t begin, std::int64_t end) noexcept = nullptr;  // these columns

  // --- attention -----------------------------------------------------------------------------------------------------------
  // Writes one token's keys and values [kv_heads, head_dim] into its slot of a block, rounded to the pool's type; of a latent pool its keys.
  void (*kv_store)(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept = nullptr;
  std::size_t (*attention_scratch_bytes)(std::int32_t heads, std::int32_t head_dim, bool latent) noexcept = nullptr;
  // Rows [row_begin, row_end) for the KV heads [kv_head_begin, kv_head_end) and the query heads that share them.
  void (*attention)(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
                    std::int32_t kv_head_end) noexcept = nullptr;
  // The same with the context of one row spread over threads, bit for bit: a part for each chunk that the row sees (attention_view.h),
  // then all of them joined in order. parts: [heads / kv_heads, part_floats(head_dim)], from a chunk to the next `stride` floats.
  void (*attention_part)(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk,
                         float* parts) noexcept = nullptr;
  void (*attention_join)(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                         std::int64_t stride) noexcept = nullptr;

  // --- sampling ------------------------------------------------------------------------------------------------------------
  // Index of the largest value; the lowest index wins a tie.
  std::int64_t (*argmax)(const float* x, std::int64_t n) noexcept = nullptr;
  // out[i] = exp(x[i] * scale - shift); returns the sum, in the fixed order of the tier's tree. `out` may be `x`.
  float (*exp_sum)(const float* x, std::int64_t n, float scale, float shift, float* out) noexcept = nullptr;
  // sums[r] = the sum, in double and in the order of the lane tree, of the values above `threshold` in run r of kMassRun values, the
  // last of which may be shorter.
  void (*masses_above)(const float* x, std::int64_t n, float threshold, double* sums) noexcept = nullptr;
};

}  // namespace braid::kernels
