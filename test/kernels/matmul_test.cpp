#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>
#if defined(__x86_64__)
#include "kernels/amx/tier.h"
#include "kernels/avx2/tier.h"
#include "kernels/avx512/tier.h"
#include "kernels/x86/cpu_features.h"
#elif defined(__aarch64__)
#include "kernels/neon/cpu_features.h"
#include "kernels/neon/tier.h"
#endif

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

using test::kAllTypes;
using test::rounds_to_bf16;

// About `inputs`, at least one block.
std::int64_t whole_blocks(WeightType type, std::int64_t inputs) {
  const std::int64_t values = weight_format(type)->block_values;
  return std::max(values, inputs / values * values);
}

struct Weights {
  Weights(const KernelTable& tier, Random& random, WeightType type, std::int64_t outputs, std::int64_t inputs)
      : stored(test::random_stored(random, type, outputs, inputs)), bytes(tier.packed_bytes(type, outputs, inputs)) {
    packed = PackedMatrix{type, outputs, inputs, bytes.data()};
    tier.pack(type, stored.data(), outputs, inputs, bytes.data(), 0, packed.panels());
  }
  std::vector<std::byte> stored;
  AlignedBytes bytes;
  PackedMatrix packed;
};

std::vector<float> multiply(const KernelTable& tier, const PackedMatrix& weights, const std::vector<float>& x, std::int64_t rows,
                            std::vector<float> out, bool accumulate) {
  AlignedBytes prepared(tier.prepared_bytes(weights.type, weights.inputs, rows));
  tier.prepare_rows(weights.type, x.data(), weights.inputs, {0, rows, rows}, weights.inputs, prepared.data());
  MatmulArgs args{&weights, prepared.data(), rows, out.data(), weights.outputs, accumulate};
  test::multiply_all(tier, args);
  return out;
}

// With AVX2 alone too, which is not what a machine with AVX-VNNI takes, and what models of float weights take.
std::vector<const KernelTable*> product_tiers() {
  std::vector<const KernelTable*> tiers = test::machine_tiers();
#if defined(__x86_64__)
  if (cpu_features().avx2_fma_f16c && cpu_features().avx_vnni) tiers.push_back(&avx2::kTable);
  const KernelTable& best = best_kernel_table();
  if (const KernelTable& floats = for_float_weights(best); &floats != &best) tiers.push_back(&floats);
#elif defined(__aarch64__)
  // Those that this machine can run, but for the best of them, which is there.
  if (cpu_features().dotprod) tiers.push_back(&neon::kTable);
  if (cpu_features().i8mm) tiers.push_back(&neon::kDotProductTable);
  if (cpu_features().bf16) tiers.push_back(&neon::kI8mmTable);
#endif
  return tiers;
}

class Matmul : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Matmul, testing::ValuesIn(product_tiers()), test::TierName());

TEST_P(Matmul, UnpackedRowsEqualDequantizedOnes) {
  Random random(1);
  for (const WeightType type : kAllTypes) {
    const std::int64_t inputs = whole_blocks(type, 96);
    const Weights w(*GetParam(), random, type, 37, inputs);
    for (std::int64_t o = 0; o < 37; ++o) {
      std::vector<float> expected(static_cast<std::size_t>(inputs));
      std::vector<float> found(expected.size());
      dequantize_row(type, w.stored.data() + static_cast<std::size_t>(o) * stored_row_bytes(*weight_format(type), inputs), inputs,
                     expected.data());
      GetParam()->unpack_row(w.packed, o, found.data());
      EXPECT_TRUE(test::same_bits(found, expected)) << weight_format(type)->name << " row " << o;
    }
  }
}

TEST_P(Matmul, IsCloseToTheProductInDouble) {
  Random random(2);
  const std::int64_t outputs = 50;
  const std::int64_t inputs = 256;
  for (const WeightType type : kAllTypes) {
    const Weights w(*GetParam(), random, type, outputs, inputs);
    const std::vector<float> x = test::random_floats(random, 3 * inputs);
    const std::vector<float> y = multiply(*GetParam(), w.packed, x, 3, std::vector<float>(static_cast<std::size_t>(3 * outputs)), false);
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        std::vector<float> row(static_cast<std::size_t>(inputs));
        GetParam()->unpack_row(w.packed, o, row.data());
        double expected = 0;
        double size = 0;
        for (std::int64_t k = 0; k < inputs; ++k) {
          const double term = static_cast<double>(row[static_cast<std::size_t>(k)]) * x[static_cast<std::size_t>(r * inputs + k)];
          expected += term;
          size += term * term;
        }
        // Rounding activations to 8 bits changes each term by up to 1/254 of the group's largest: about 0.7% of the root of the
        // squares' sum; four times that. Bf16 rounds each term by up to 0.4%. Float types err by rounding alone.
        const double bound = (is_quantized(type) ? 0.03 : rounds_to_bf16(*GetParam(), type) ? 0.012 : 1e-5) * std::sqrt(size);
        EXPECT_NEAR(y[static_cast<std::size_t>(r * outputs + o)], expected, bound) << weight_format(type)->name;
      }
    }
  }
}

TEST_P(Matmul, EqualsScalarBitForBit) {
  Random random(3);
  for (int round = 0; round < 170; ++round) {
    const WeightType type = kAllTypes[static_cast<std::size_t>(round) % std::size(kAllTypes)];
    const std::int64_t outputs = test::uniform(random, 1, 130);
    const std::int64_t inputs = whole_blocks(type, test::uniform(random, 1, weight_format(type)->block_values >= 64 ? 1000 : 300));
    const std::int64_t rows = test::uniform(random, 0, 2) == 0 ? 1 : test::uniform(random, 1, 40);
    if (rounds_to_bf16(*GetParam(), type)) continue;
    const Weights w(*GetParam(), random, type, outputs, inputs);
    const std::vector<float> x = test::random_floats(random, rows * inputs);
    const std::vector<float> before = test::random_floats(random, rows * outputs);
    for (const bool accumulate : {false, true}) {
      ASSERT_TRUE(test::same_bits(multiply(*GetParam(), w.packed, x, rows, before, accumulate),
                                  multiply(test::scalar_tier(), w.packed, x, rows, before, accumulate)))
          << weight_format(type)->name << " outputs " << outputs << " inputs " << inputs << " rows " << rows;
    }
  }
}

TEST_P(Matmul, ARowDoesNotDependOnTheOthersOrOnRanges) {
  Random random(4);
  for (const WeightType type : kAllTypes) {
    const std::int64_t rows = 27;
    const std::int64_t inputs = whole_blocks(type, 352);
    const Weights w(*GetParam(), random, type, 150, inputs);
    const std::vector<float> x = test::random_floats(random, rows * inputs);
    const std::vector<float> none(static_cast<std::size_t>(rows * 150));
    const std::vector<float> together = multiply(*GetParam(), w.packed, x, rows, none, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::vector<float> row(x.begin() + r * inputs, x.begin() + (r + 1) * inputs);
      const std::vector<float> alone = multiply(*GetParam(), w.packed, row, 1, std::vector<float>(150), false);
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + r * 150));
    }
    std::vector<float> pieces(none);
    AlignedBytes prepared(GetParam()->prepared_bytes(type, inputs, rows));
    GetParam()->prepare_rows(type, x.data(), inputs, {0, rows, rows}, inputs, prepared.data());
    const MatmulArgs args{&w.packed, prepared.data(), rows, pieces.data(), 150, false};
    for (std::int64_t p = w.packed.panels(); p-- > 0;) test::multiply_panels(*GetParam(), args, {{p, p + 1}});
    EXPECT_TRUE(test::same_bits(pieces, together));
  }
}

// Results that go past the caches are the same, and nothing beside them is written, where rows are aligned and where they are not.
TEST_P(Matmul, ResultsPastTheCachesAreTheSame) {
  Random random(9);
  constexpr std::int64_t kRows = 13;
  for (const WeightType type : kAllTypes) {
    const std::int64_t inputs = whole_blocks(type, 96);
    const Weights w(*GetParam(), random, type, 69, inputs);  // the last panel has five outputs
    const std::vector<float> x = test::random_floats(random, kRows * inputs);
    AlignedBytes prepared(GetParam()->prepared_bytes(type, inputs, kRows));
    GetParam()->prepare_rows(type, x.data(), inputs, {0, kRows, kRows}, inputs, prepared.data());
    for (const std::int64_t stride : {80, 85}) {
      for (const std::int64_t offset : {0, 1}) {
        const std::vector<float> before = test::random_floats(random, kRows * stride + offset);
        const auto multiplied = [&](bool past_caches) {
          AlignedBytes out(before.size() * sizeof(float));
          auto* const floats = reinterpret_cast<float*>(out.data());
          std::ranges::copy(before, floats);
          test::multiply_all(*GetParam(), {&w.packed, prepared.data(), kRows, floats + offset, stride, false, past_caches});
          return std::vector<float>(floats, floats + before.size());
        };
        EXPECT_TRUE(test::same_bits(multiplied(true), multiplied(false))) << weight_format(type)->name << ' ' << stride << ' ' << offset;
      }
    }
  }
}

// Weights that are read side by side or in order give the same.
TEST_P(Matmul, TheOrderOfReadingChangesNothing) {
  Random random(13);
  for (const WeightType type : kAllTypes) {
    for (const std::int64_t rows : {1, 2, 7, 13}) {
      const std::int64_t inputs = whole_blocks(type, 352);
      const Weights w(*GetParam(), random, type, 150, inputs);
      const std::vector<float> x = test::random_floats(random, rows * inputs);
      AlignedBytes prepared(GetParam()->prepared_bytes(type, inputs, rows));
      GetParam()->prepare_rows(type, x.data(), inputs, {0, rows, rows}, inputs, prepared.data());
      const auto multiplied = [&](bool side_by_side) {
        std::vector<float> out(static_cast<std::size_t>(rows * 150));
        test::multiply_all(*GetParam(), {.weights = &w.packed,
                                         .prepared = prepared.data(),
                                         .rows = rows,
                                         .out = out.data(),
                                         .out_stride = 150,
                                         .side_by_side = side_by_side});
        return out;
      };
      EXPECT_TRUE(test::same_bits(multiplied(true), multiplied(false))) << weight_format(type)->name << " rows " << rows;
    }
  }
}

// What a tier fuses is what it would have computed in steps, for any range of panels.
TEST_P(Matmul, FusedSwiGluIsThatOfTwoProducts) {
  Random random(10);
  int fused = 0;
  for (const WeightType type : kAllTypes) {
    for (const std::int64_t rows : {1, 5, 13, 16, 33, 64, 151}) {
      if (GetParam()->fuses_swiglu == nullptr || !GetParam()->fuses_swiglu(type, rows)) continue;
      ++fused;
      for (const std::int64_t outputs : {69, 128}) {
        const std::int64_t inputs = whole_blocks(type, 1024);
        const Weights gate(*GetParam(), random, type, outputs, inputs);
        const Weights up(*GetParam(), random, type, outputs, inputs);
        const std::vector<float> x = test::random_floats(random, rows * inputs);
        const std::vector<float> none(static_cast<std::size_t>(rows * outputs));
        std::vector<float> expected = multiply(*GetParam(), gate.packed, x, rows, none, false);
        const std::vector<float> of_up = multiply(*GetParam(), up.packed, x, rows, none, false);
        GetParam()->swiglu(expected.data(), of_up.data(), rows * outputs, expected.data());
        AlignedBytes prepared(GetParam()->prepared_bytes(type, inputs, rows));
        GetParam()->prepare_rows(type, x.data(), inputs, {0, rows, rows}, inputs, prepared.data());
        for (const bool past_caches : {false, true}) {
          AlignedBytes found(none.size() * sizeof(float));
          auto* const out = reinterpret_cast<float*>(found.data());
          const MatmulArgs args{.weights = &gate.packed,
                                .prepared = prepared.data(),
                                .rows = rows,
                                .out = out,
                                .out_stride = outputs,
                                .past_caches = past_caches,
                                .up = &up.packed};
          test::multiply_panels(*GetParam(), args, {{3, gate.packed.panels()}, {0, 2}, {2, 3}});
          EXPECT_TRUE(test::same_bits(std::vector<float>(out, out + none.size()), expected))
              << weight_format(type)->name << " rows " << rows << " outputs " << outputs << (past_caches ? ", past the caches" : "");
        }
      }
    }
  }
  if (fused == 0) GTEST_SKIP() << "this tier fuses nothing";
}

// Which loop takes few rows may depend on their number and on the length of a row of weights.
TEST_P(Matmul, FewRowsOfLongWeightsEqualScalarBitForBit) {
  Random random(8);
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_K, WeightType::kRotated8}) {
    for (const std::int64_t inputs : {768, 1024, 2304}) {
      const Weights w(*GetParam(), random, type, 37, inputs);
      const std::vector<float> x = test::random_floats(random, 10 * inputs);
      const std::vector<float> all = multiply(test::scalar_tier(), w.packed, x, 10, std::vector<float>(370), false);
      for (std::int64_t rows = 1; rows <= 10; ++rows) {
        const std::vector<float> few(x.begin(), x.begin() + rows * inputs);
        const std::vector<float> found =
            multiply(*GetParam(), w.packed, few, rows, std::vector<float>(static_cast<std::size_t>(rows * 37)), false);
        ASSERT_TRUE(std::equal(found.begin(), found.end(), all.begin()))
            << weight_format(type)->name << " inputs " << inputs << " rows " << rows;
      }
    }
  }
}

// Which loop takes many rows, and how many bands of them there are, depends on their number.
TEST_P(Matmul, ManyRowsEqualScalarBitForBit) {
  Random random(14);
  constexpr std::int64_t kOutputs = 69;
  for (const WeightType type : kAllTypes) {
    if (!is_quantized(type)) continue;
    for (const std::int64_t rows : {12, 13, 19, 151}) {
      const std::int64_t inputs = whole_blocks(type, rows == 151 ? 1376 : 608);
      const Weights w(*GetParam(), random, type, kOutputs, inputs);
      const std::vector<float> x = test::random_floats(random, rows * inputs);
      const std::vector<float> before = test::random_floats(random, rows * kOutputs);
      const std::vector<float> expected = multiply(test::scalar_tier(), w.packed, x, rows, before, true);
      EXPECT_TRUE(test::same_bits(multiply(*GetParam(), w.packed, x, rows, before, true), expected))
          << weight_format(type)->name << " rows " << rows;
      AlignedBytes prepared(GetParam()->prepared_bytes(type, inputs, rows));
      GetParam()->prepare_rows(type, x.data(), inputs, {0, rows, rows}, inputs, prepared.data());
      std::vector<float> pieces(before);
      const MatmulArgs args{&w.packed, prepared.data(), rows, pieces.data(), kOutputs, true};
      test::multiply_panels(*GetParam(), args, {{4, 5}, {1, 4}, {0, 1}});
      EXPECT_TRUE(test::same_bits(pieces, expected)) << weight_format(type)->name << " rows " << rows << ", in pieces";
    }
  }
}

// Groups of all lengths: the last one of a row takes what is left.
TEST_P(Matmul, LastGroupsOfAllLengthsEqualScalarBitForBit) {
  Random random(10);
  constexpr std::int64_t kRows = 7;
  const auto expect_equal = [&](WeightType type, std::int64_t inputs) {
    const Weights w(*GetParam(), random, type, 37, inputs);
    const std::vector<float> x = test::random_floats(random, kRows * inputs);
    const std::vector<float> none(static_cast<std::size_t>(kRows * 37));
    EXPECT_TRUE(test::same_bits(multiply(*GetParam(), w.packed, x, kRows, none, false),
                                multiply(test::scalar_tier(), w.packed, x, kRows, none, false)))
        << weight_format(type)->name << ' ' << inputs;
  };
  for (const WeightType type :
       {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kIQ4_NL, WeightType::kMXFP4}) {
    for (std::int64_t inputs = 32; inputs <= 672; inputs += 32) expect_equal(type, inputs);
  }
  for (const std::int64_t inputs : {64, 448, 512, 576, 640, 704, 1024, 1088, 1152, 1216}) expect_equal(WeightType::kRotated8, inputs);
}

TEST_P(Matmul, ExtremeCodesDoNotSaturate) {
  for (const WeightType type : kAllTypes) {
    if (!is_quantized(type)) continue;
    for (const std::byte code : {std::byte{0x80}, std::byte{0x7F}, std::byte{0xFF}, std::byte{0x00}}) {
      for (const float sign : {1.0F, -1.0F}) {
        const std::int64_t inputs =
            whole_blocks(type, (type == WeightType::kRotated8 ? kMostWideGroupBlocks : kMostGroupBlocks) * kBlockValues);
        std::vector<std::byte> stored(stored_row_bytes(*weight_format(type), inputs), code);
        for (std::size_t at = 0; at < stored.size(); at += static_cast<std::size_t>(weight_format(type)->block_bytes)) {
          for (const std::size_t offset : test::scale_offsets(type)) {
            stored[at + offset] = std::byte{0};
            stored[at + offset + 1] = std::byte{0x3C};  // 1.0
          }
          if (type == WeightType::kMXFP4) stored[at] = std::byte{128};  // 2.0, halved
        }
        AlignedBytes bytes(GetParam()->packed_bytes(type, 1, inputs));
        GetParam()->pack(type, stored.data(), 1, inputs, bytes.data(), 0, 1);
        const PackedMatrix packed{type, 1, inputs, bytes.data()};
        std::vector<float> row(static_cast<std::size_t>(inputs));
        GetParam()->unpack_row(packed, 0, row.data());
        double expected = 0;
        double size = 0;
        for (const float value : row) {
          expected += static_cast<double>(value) * static_cast<double>(sign);
          size += std::fabs(static_cast<double>(value));
        }
        const std::vector<float> x(static_cast<std::size_t>(inputs), sign);
        EXPECT_NEAR(multiply(*GetParam(), packed, x, 1, {0.0F}, false)[0], expected, 1e-5 * size) << weight_format(type)->name;
      }
    }
  }
}

#if defined(__x86_64__)
// Of a machine with AMX, which nothing here needs.
TEST(Matmul, TilesRoundNoF16InAModelOfFloatWeights) {
  EXPECT_EQ(for_float_weights(test::scalar_tier()).isa, Isa::kScalar);
  const KernelTable& floats = for_float_weights(amx::kTable);
  EXPECT_EQ(floats.attention, avx512::kTable.attention);
  EXPECT_EQ(floats.attention_part, avx512::kTable.attention_part);
  EXPECT_EQ(floats.kv_type, KvType::kF16);
  if (!cpu_features().avx512) GTEST_SKIP() << "needs AVX-512";
  Random random(7);
  for (const std::int64_t rows : {1, 5, 40}) {
    const Weights weights(floats, random, WeightType::kF16, 50, 300);
    const std::vector<float> x = test::random_floats(random, rows * 300);
    const std::vector<float> none(static_cast<std::size_t>(rows * 50));
    EXPECT_TRUE(test::same_bits(multiply(floats, weights.packed, x, rows, none, false),
                                multiply(avx512::kTable, weights.packed, x, rows, none, false)));
  }
}
#endif

TEST(PackedBytes, StayCloseToTheFile) {
  for (const WeightType type : kAllTypes) {
    const double stored = static_cast<double>(stored_row_bytes(*weight_format(type), 2048)) * 512;
    const double packed = static_cast<double>(packed_bytes(type, 512, 2048));
    EXPECT_LE(packed / stored, 1.06) << weight_format(type)->name;
  }
}

TEST_P(Matmul, ZeroAndTinyActivationsGiveZeros) {
  Random random(6);
  const Weights w(*GetParam(), random, WeightType::kQ8_0, 16, 64);
  std::vector<float> x(64, 0.0F);
  x[3] = 1e-38F;
  for (const float y : multiply(*GetParam(), w.packed, x, 1, std::vector<float>(16), false)) EXPECT_EQ(y, 0.0F);
}

TEST_P(Matmul, NoRowsWriteNothing) {
  Random random(8);
  for (const WeightType type : kAllTypes) {
    const Weights w(*GetParam(), random, type, 40, whole_blocks(type, 64));
    EXPECT_TRUE(multiply(*GetParam(), w.packed, {}, 0, {}, false).empty());
  }
}

// A model that overflows gives garbage, but no undefined behaviour.
TEST_P(Matmul, NonFiniteActivationsDoNoHarm) {
  Random random(9);
  for (const WeightType type : kAllTypes) {
    const std::int64_t inputs = whole_blocks(type, 64);
    const Weights w(*GetParam(), random, type, 16, inputs);
    std::vector<float> x = test::random_floats(random, inputs);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    x[40] = std::numeric_limits<float>::infinity();
    x[41] = -std::numeric_limits<float>::max();
    EXPECT_EQ(multiply(*GetParam(), w.packed, x, 1, std::vector<float>(16), false).size(), 16U);
  }
}

// Whatever was no number within a layer is none in the residual stream, where it is found; a row beside it is not touched.
TEST_P(Matmul, ANaNOrInfinitySpoilsEveryOutputOfItsRowAlone) {
  constexpr std::int64_t kOutputs = 40;
  Random random(10);
  for (const WeightType type : kAllTypes) {
    const std::int64_t inputs = whole_blocks(type, 1300);
    const Weights w(*GetParam(), random, type, kOutputs, inputs);
    for (const std::int64_t rows : {1, 3, 20}) {
      std::vector<float> x = test::random_floats(random, rows * inputs);
      std::vector<float> expected =
          multiply(*GetParam(), w.packed, x, rows, std::vector<float>(static_cast<std::size_t>(rows * kOutputs)), false);
      for (const float spoilt : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        for (const std::int64_t at : {std::int64_t{0}, std::int64_t{21}, inputs - 1}) {
          const std::int64_t row = rows / 2;
          std::vector<float> bad = x;
          bad[static_cast<std::size_t>(row * inputs + at)] = spoilt;
          const std::vector<float> y = multiply(*GetParam(), w.packed, bad, rows, std::vector<float>(expected.size()), false);
          for (std::int64_t i = 0; i < rows * kOutputs; ++i) {
            const auto found = y[static_cast<std::size_t>(i)];
            if (i / kOutputs == row) {
              ASSERT_FALSE(std::isfinite(found)) << weight_format(type)->name << " rows " << rows << " at " << at;
            } else {
              ASSERT_EQ(found, expected[static_cast<std::size_t>(i)]) << weight_format(type)->name << " rows " << rows << " at " << at;
            }
          }
        }
      }
    }
  }
}

// As many as no tier puts in an order of its own.
TEST_P(Matmul, FewPreparedRowsEqualScalar) {
  Random random(7);
  constexpr std::int64_t kRows = 3;
  for (const WeightType type : kAllTypes) {
    if (rounds_to_bf16(*GetParam(), type)) continue;
    const std::int64_t inputs = whole_blocks(type, 321);
    const std::vector<float> x = test::random_floats(random, kRows * (inputs + 3), 30.0F);
    AlignedBytes found(GetParam()->prepared_bytes(type, inputs, kRows));
    AlignedBytes expected(found.size());
    GetParam()->prepare_rows(type, x.data(), inputs + 3, {0, kRows, kRows}, inputs, found.data());
    test::scalar_tier().prepare_rows(type, x.data(), inputs + 3, {0, kRows, kRows}, inputs, expected.data());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0) << weight_format(type)->name;
  }
}

}  // namespace
}  // namespace braid::kernels
