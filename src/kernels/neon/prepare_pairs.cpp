#include "kernels/neon/paired_rows.h"
#include "kernels/neon/tier.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

#include <cstring>

namespace braid::kernels::neon {
namespace {

constexpr std::int64_t kPairedCodes = 8;                                       // of a row, side by side
constexpr std::int64_t kGroupBytes = 2 * kMostWideGroupBlocks * kBlockValues;  // of a prepared group: its codes take half of it at most

// Prepares a row group by group, as scalar/ would, and puts all of it into its places of a pair; `second`: whether it is the pair's.
void prepare_row(WeightType type, const float* x, std::int64_t inputs, bool second, std::byte* pair) {
  const BlockForm& form = *block_form(type);
  const PreparedLayout whole = prepared_layout(type, inputs);
  alignas(64) std::byte group[kGroupBytes];
  // Every `size` bytes of `bytes` in the group go to a pair's place for those `to` bytes from a row's begin; returns what follows there.
  const auto place = [&](std::int64_t from, std::int64_t bytes, std::int64_t size, std::int64_t to) {
    for (std::int64_t at = 0; at < bytes; at += size)
      std::memcpy(pair + 2 * (to + at) + (second ? size : 0), group + from + at, static_cast<std::size_t>(size));
    return to + bytes;
  };
  std::int64_t scales = whole.scales;
  std::int64_t starts = whole.starts;
  std::int64_t sums = whole.sums;
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0, end = 0; begin < blocks; begin = end) {
    end = group_end(form.codes, begin, blocks);
    const std::int64_t codes = (end - begin) * kBlockValues;
    scalar::prepare_rows(type, x + begin * kBlockValues, 0, {0, 1, 1}, codes, group);
    const PreparedLayout part = prepared_layout(type, codes);
    place(0, codes, kPairedCodes, begin * kBlockValues);
    scales = place(part.scales, part.starts - part.scales, 4, scales);
    starts = place(part.starts, part.sums - part.starts, 4, starts);
    const std::int64_t sum_bytes = form.scales == ScaleForm::kSub ? 2 : 4;
    if (form.codes.minimums) sums = place(part.sums, (part.sums - part.starts) / 4 * sum_bytes, sum_bytes, sums);
  }
}

}  // namespace

void prepare_pairs(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                   std::byte* prepared) noexcept {
  const std::int64_t pair_bytes = 2 * prepared_layout(type, inputs).bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride) {
    std::byte* const pair = prepared + r / 2 * pair_bytes;
    prepare_row(type, x, inputs, r % 2 != 0, pair);
    if (r % 2 == 0 && r + 1 == rows.count) prepare_row(type, x, inputs, true, pair);
  }
}

}  // namespace braid::kernels::neon
