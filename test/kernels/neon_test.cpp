// What the variants of the NEON tier have of their own: which one a processor gets, and rows in pairs.
#include "kernels/neon/cpu_features.h"
#include "kernels/neon/paired_rows.h"
#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

TEST(Neon, TheVariantIsThatOfTheProcessor) {
  const CpuFeatures features = cpu_features();
  const KernelTable& expected = features.i8mm ? neon::kI8mmTable : features.dotprod ? neon::kDotProductTable : neon::kTable;
  std::string missing;
  EXPECT_EQ(kernel_table(Isa::kNeon, missing), &expected);
  EXPECT_EQ(&best_kernel_table(), &expected);
}

// Sections of a prepared row in the order in which they lie: the bytes of what is put side by side, and where they begin and end.
struct Section {
  std::int64_t size;
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Section> sections(WeightType type, std::int64_t inputs) {
  const BlockForm& form = *block_form(type);
  const PreparedLayout layout = prepared_layout(type, inputs);
  std::vector<Section> all = {{8, 0, inputs}, {4, layout.scales, layout.starts}, {4, layout.starts, layout.sums}};
  const std::int64_t size = form.scales == ScaleForm::kSub ? 2 : 4;
  if (form.codes.minimums) all.push_back({size, layout.sums, layout.sums + (layout.sums - layout.starts) / 4 * size});
  return all;
}

// Threads share rows out at any one, also between those of a pair; the last one stands twice where it has no other.
TEST(Neon, PairsHaveWhatTheirRowsHaveSideBySide) {
  Random random(1);
  for (const WeightType type : test::kAllTypes) {
    if (!is_quantized(type)) continue;
    for (const std::int64_t inputs : {256, 1280, 2304}) {
      constexpr std::int64_t kRows = 7;
      const std::vector<float> x = test::random_floats(random, kRows * inputs);
      const std::int64_t row_bytes = prepared_layout(type, inputs).bytes;
      AlignedBytes plain(static_cast<std::size_t>(kRows * row_bytes));
      test::scalar_tier().prepare_rows(type, x.data(), inputs, {0, kRows, kRows}, inputs, plain.data());
      AlignedBytes paired(neon::kI8mmTable.prepared_bytes(type, inputs, kRows));
      for (const RowRange& rows : {RowRange{5, 7, kRows}, RowRange{0, 1, kRows}, RowRange{1, 5, kRows}})
        neon::kI8mmTable.prepare_rows(type, x.data() + rows.begin * inputs, inputs, rows, inputs, paired.data());
      for (std::int64_t r = 0; r < kRows + 1; ++r) {
        const std::byte* row = plain.data() + std::min(r, kRows - 1) * row_bytes;
        const std::byte* pair = paired.data() + r / 2 * 2 * row_bytes;
        for (const Section& section : sections(type, inputs)) {
          for (std::int64_t at = section.begin; at < section.end; at += section.size) {
            ASSERT_TRUE(std::equal(row + at, row + at + section.size, pair + 2 * at + r % 2 * section.size))
                << weight_format(type)->name << " inputs " << inputs << " row " << r << " at " << at;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::kernels
