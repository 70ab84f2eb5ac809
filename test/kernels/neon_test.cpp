// What the variants of the NEON tier have of their own: which one a processor gets, rows in pairs, and the arithmetic of products in bf16.
#include "kernels/half.h"
#include "kernels/neon/cpu_features.h"
#include "kernels/neon/paired_rows.h"
#include "kernels/neon/tier.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

TEST(Neon, TheVariantIsThatOfTheProcessor) {
  const CpuFeatures features = cpu_features();
  const KernelTable& expected = features.bf16      ? neon::kBf16Table
                                : features.i8mm    ? neon::kI8mmTable
                                : features.dotprod ? neon::kDotProductTable
                                                   : neon::kTable;
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

// a + b rounded to odd: where it is no float, the nearer one to zero with its last bit set. Sums are no subnormal numbers here.
float add_to_odd(float a, float b) {
  const double sum = static_cast<double>(a) + static_cast<double>(b);
  const double of_b = sum - static_cast<double>(a);
  const double error = (static_cast<double>(a) - (sum - of_b)) + (static_cast<double>(b) - of_b);
  const auto rounded = static_cast<float>(sum);
  const double over = (static_cast<double>(rounded) - sum) - error;
  if (over == 0) return rounded;
  const bool away = (over > 0) == (rounded > 0);
  const float nearer = away ? std::nextafter(rounded, 0.0F) : rounded;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearer) | 1U);
}

TEST(Neon, OddSumsAreThoseOfTheirDefinition) {
  EXPECT_EQ(add_to_odd(1.0F, 2.0F), 3.0F);
  EXPECT_EQ(add_to_odd(1.0F, 0x1p-30F), 1.0F + 0x1p-23F);   // not 1
  EXPECT_EQ(add_to_odd(1.0F, -0x1p-30F), 1.0F - 0x1p-24F);  // odd as it is
  EXPECT_EQ(add_to_odd(-1.0F, -0x1p-70F), -1.0F - 0x1p-23F);
}

float to_bf16(float value) { return bf16_to_float(float_to_bf16(value)); }

// The header of neon/matmul_bf16.cpp, for one output.
float multiply_by_definition(const float* x, const std::vector<float>& weights) {
  std::vector<float> products((weights.size() + 3) / 4 * 4);
  for (std::size_t k = 0; k < weights.size(); ++k) products[k] = to_bf16(x[k]) * weights[k];
  float y = 0.0F;
  for (std::size_t k = 0; k < products.size(); k += 2) y = add_to_odd(y, add_to_odd(products[k], products[k + 1]));
  return y;
}

TEST(Neon, ProductsInBf16AreThoseOfTheirDefinition) {
  if (!cpu_features().bf16) GTEST_SKIP() << "needs FEAT_BF16";
  Random random(2);
  const KernelTable& tier = neon::kBf16Table;
  constexpr std::int64_t kOutputs = 37;
  for (const std::int64_t inputs : {1, 2, 3, 4, 5, 64, 255, 256, 258, 515, 1024}) {
    const std::vector<std::byte> stored = test::random_stored(random, WeightType::kBF16, kOutputs, inputs);
    AlignedBytes packed(tier.packed_bytes(WeightType::kBF16, kOutputs, inputs));
    const PackedMatrix weights{WeightType::kBF16, kOutputs, inputs, packed.data()};
    tier.pack(weights.type, stored.data(), kOutputs, inputs, packed.data(), 0, weights.panels());
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 20}) {
      const std::vector<float> x = test::random_floats(random, rows * inputs);
      AlignedBytes prepared(tier.prepared_bytes(weights.type, inputs, rows));
      tier.prepare_rows(weights.type, x.data(), inputs, {0, rows, rows}, inputs, prepared.data());
      std::vector<float> out(static_cast<std::size_t>(rows * kOutputs));
      test::multiply_all(tier, {&weights, prepared.data(), rows, out.data(), kOutputs});
      std::vector<float> row(static_cast<std::size_t>(inputs));
      for (std::int64_t o = 0; o < kOutputs; ++o) {
        tier.unpack_row(weights, o, row.data());
        for (std::int64_t r = 0; r < rows; ++r) {
          ASSERT_EQ(out[static_cast<std::size_t>(r * kOutputs + o)], multiply_by_definition(x.data() + r * inputs, row))
              << "inputs " << inputs << " rows " << rows << " row " << r << " output " << o;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::kernels
