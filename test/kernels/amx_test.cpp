// The AMX tier's loops on emulated tiles.
#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/tier.h"
#include "kernels/avx512/tier.h"
#include "kernels/emulated_tiles.h"
#include "kernels/packed_layout.h"
#include "kernels/tiers.h"
#include "kernels/x86/cpu_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

// Those that tiles multiply as integers.
constexpr WeightType kTileTypes[] = {WeightType::kQ8_0,   WeightType::kQ2_K,   WeightType::kQ4_0,  WeightType::kQ3_K,    WeightType::kQ4_1,
                                     WeightType::kQ4_K,   WeightType::kQ5_0,   WeightType::kQ5_K,  WeightType::kQ5_1,    WeightType::kQ6_K,
                                     WeightType::kIQ4_NL, WeightType::kIQ4_XS, WeightType::kMXFP4, WeightType::kRotated8};

class EmulatedAmx : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_features().avx512) GTEST_SKIP() << "needs AVX-512";
  }
};

struct Product {
  Product(Random& random, WeightType type, std::int64_t outputs, std::int64_t inputs, std::int64_t row_count)
      : bytes(packed_bytes(type, outputs, inputs)), x(test::random_floats(random, row_count * inputs)), rows(row_count) {
    const std::vector<std::byte> stored = test::random_stored(random, type, outputs, inputs);
    weights = PackedMatrix{type, outputs, inputs, bytes.data()};
    pack(type, stored.data(), outputs, inputs, bytes.data(), 0, weights.panels());
  }
  AlignedBytes bytes;
  PackedMatrix weights;
  std::vector<float> x;
  std::int64_t rows;
};

// Rows for the scalar tier.
struct PreparedRows {
  explicit PreparedRows(const Product& product) : rows(prepared_bytes(product.weights.type, product.weights.inputs, product.rows)) {
    const auto& [type, outputs, inputs, data, number] = product.weights;
    test::scalar_tier().prepare_rows(type, product.x.data(), inputs, {0, product.rows, product.rows}, inputs, rows.data());
  }
  AlignedBytes rows;
};

// The same, and tiles of them whose missing rows hold anything, as floats NaN.
struct Prepared : PreparedRows {
  explicit Prepared(const Product& product)
      : PreparedRows(product), tiles(static_cast<std::size_t>(amx::row_tiles(product.rows) *
                                                              amx::PreparedTiles(product.weights.type, product.weights.inputs).bytes)) {
    const auto& [type, outputs, inputs, data, number] = product.weights;
    std::memset(tiles.data(), 0xFF, tiles.size());
    amx::prepare_tile_rows(type, product.x.data(), inputs, {0, product.rows, product.rows}, inputs, tiles.data());
  }
  AlignedBytes tiles;
};

TEST_F(EmulatedAmx, QuantizedProductsEqualScalarBitForBit) {
  Random random(11);
  for (std::size_t round = 0; round < 112; ++round) {
    const WeightType type = kTileTypes[round % std::size(kTileTypes)];
    const std::int64_t block = weight_format(type)->block_values;
    const std::int64_t inputs = block * test::uniform(random, 1, static_cast<int>(768 / block));
    const std::int64_t outputs = test::uniform(random, 1, 70);
    const Product product(random, type, outputs, inputs, test::uniform(random, 1, 70));
    const Prepared prepared(product);
    const std::vector<float> before = test::random_floats(random, product.rows * outputs);
    std::vector<float> expected(before), found(before);
    MatmulArgs args{&product.weights, prepared.rows.data(), product.rows, expected.data(), outputs, round % 2 == 1};
    test::multiply_all(test::scalar_tier(), args);
    args.prepared = prepared.tiles.data();
    args.out = found.data();
    test::emulated_matmul_quantized(args, test::Ranges{{0, product.weights.panels()}}.source());
    ASSERT_TRUE(test::same_bits(found, expected))
        << weight_format(type)->name << " outputs " << outputs << " inputs " << inputs << " rows " << product.rows;
  }
}

// As the AMX tier has it, here on any machine with AVX-512.
TEST_F(EmulatedAmx, OneRowByFourPanelsEqualsScalarBitForBit) {
  Random random(15);
  for (int round = 0; round < 56; ++round) {
    const WeightType type = test::kAllTypes[3 + round % 14];
    const std::int64_t block = weight_format(type)->block_values;
    const Product product(random, type, test::uniform(random, 1, 100), block * test::uniform(random, 1, static_cast<int>(2048 / block)), 1);
    const PreparedRows prepared(product);
    std::vector<float> expected = test::random_floats(random, product.weights.outputs);
    std::vector<float> found(expected);
    MatmulArgs args{&product.weights, prepared.rows.data(), 1, expected.data(), product.weights.outputs, round % 2 == 1};
    test::multiply_all(test::scalar_tier(), args);
    args.out = found.data();
    avx512::matmul_quantized(args, 0, product.weights.panels());
    ASSERT_TRUE(test::same_bits(found, expected))
        << weight_format(type)->name << " outputs " << product.weights.outputs << " inputs " << product.weights.inputs;
  }
}

// Panels from `first_part` on, then those before, without a stop between them.
void expect_scalar_product(const Product& product, std::int64_t first_part) {
  const Prepared prepared(product);
  const auto& [type, outputs, inputs, data, number] = product.weights;
  std::vector<float> expected(static_cast<std::size_t>(product.rows * outputs)), found(expected);
  MatmulArgs args{&product.weights, prepared.rows.data(), product.rows, expected.data(), outputs, false};
  test::multiply_all(test::scalar_tier(), args);
  args.prepared = prepared.tiles.data();
  args.out = found.data();
  test::emulated_matmul_quantized(args, test::Ranges{{first_part, product.weights.panels()}, {0, first_part}}.source());
  EXPECT_TRUE(test::same_bits(found, expected)) << weight_format(type)->name << " rows " << product.rows;
}

TEST_F(EmulatedAmx, MoreRowsThanABandKeepTheirOrder) {
  Random random(12);
  expect_scalar_product(Product(random, WeightType::kQ4_K, 48, 256, 530), 1);
  expect_scalar_product(Product(random, WeightType::kQ8_0, 80, 288, 530), 1);
  expect_scalar_product(Product(random, WeightType::kRotated8, 150, 576, 1060), 2);
}

TEST_F(EmulatedAmx, MorePanelsThanTakeTurnsKeepTheirOrder) {
  Random random(14);
  for (const std::int64_t rows : {16, 32, 50}) {
    for (const WeightType type : {WeightType::kQ6_K, WeightType::kQ4_K, WeightType::kQ8_0, WeightType::kRotated8}) {
      expect_scalar_product(Product(random, type, 300, 2048, rows), 9);
    }
  }
}

// The matrices of gate and up in one product, panels from `first_part` on and then those before, against two products and SwiGLU.
void expect_fused_swiglu(Random& random, WeightType type, std::int64_t outputs, std::int64_t inputs, std::int64_t rows,
                         std::int64_t first_part) {
  const Product gate(random, type, outputs, inputs, rows);
  const Product up(random, type, outputs, inputs, rows);
  const Prepared prepared(gate);
  std::vector<float> expected(static_cast<std::size_t>(rows * outputs)), of_up(expected);
  test::multiply_all(test::scalar_tier(), {&gate.weights, prepared.rows.data(), rows, expected.data(), outputs, false});
  test::multiply_all(test::scalar_tier(), {&up.weights, prepared.rows.data(), rows, of_up.data(), outputs, false});
  test::scalar_tier().swiglu(expected.data(), of_up.data(), rows * outputs, expected.data());
  const std::int64_t stride = outputs + 3;
  std::vector<float> found = test::random_floats(random, rows * stride);
  std::vector<float> framed(found);  // what lies between rows stays
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(expected.begin() + row * outputs, outputs, framed.begin() + row * stride);
  const MatmulArgs args{.weights = &gate.weights,
                        .prepared = prepared.tiles.data(),
                        .rows = rows,
                        .out = found.data(),
                        .out_stride = stride,
                        .up = &up.weights};
  test::emulated_matmul_quantized(args, test::Ranges{{first_part, gate.weights.panels()}, {0, first_part}}.source());
  ASSERT_TRUE(test::same_bits(found, framed)) << weight_format(type)->name << ' ' << outputs << " outputs " << inputs << " inputs " << rows
                                              << " rows";
}

TEST_F(EmulatedAmx, FusedSwiGluIsThatOfTwoProducts) {
  Random random(16);
  for (std::size_t round = 0; round < 84; ++round) {
    const WeightType type = kTileTypes[round % std::size(kTileTypes)];
    const std::int64_t block = weight_format(type)->block_values;
    const std::int64_t outputs = test::uniform(random, 1, 200);
    const std::int64_t inputs = block * test::uniform(random, 1, static_cast<int>(1024 / block));
    expect_fused_swiglu(random, type, outputs, inputs, test::uniform(random, 1, 100), (outputs - 1) / 16 / 2);
  }
  for (const WeightType type : {WeightType::kRotated8, WeightType::kQ8_0, WeightType::kQ5_1, WeightType::kQ4_K, WeightType::kQ3_K}) {
    for (const std::int64_t rows : {9, 16, 17, 32, 40, 64, 96, 160}) expect_fused_swiglu(random, type, 96, 1024, rows, 2);
    for (const std::int64_t rows : {32, 96}) expect_fused_swiglu(random, type, 300, 256, rows, 9);
  }
  for (const std::int64_t inputs : {64, 512, 576, 704, 1216}) expect_fused_swiglu(random, WeightType::kRotated8, 53, inputs, 40, 1);
  expect_fused_swiglu(random, WeightType::kRotated8, 80, 576, 1060, 3);  // more rows than a band
  expect_fused_swiglu(random, WeightType::kQ5_K, 80, 256, 1060, 3);
  expect_fused_swiglu(random, WeightType::kQ8_0, 80, 288, 1060, 3);
}

// A last group takes up to 128 inputs more than its 512, straight code and not.
TEST_F(EmulatedAmx, LastGroupsOfAllLengths) {
  Random random(15);
  for (const std::int64_t inputs : {64, 448, 512, 576, 640, 704, 1024, 1088, 1152, 1216}) {
    for (const std::int64_t rows : {9, 40, 64}) expect_scalar_product(Product(random, WeightType::kRotated8, 96, inputs, rows), 2);
  }
}

float round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

std::vector<std::uint16_t> bf16_rows(const Product& product, std::int64_t row_bytes) {
  std::vector<std::uint16_t> rows(static_cast<std::size_t>(product.rows * row_bytes / 2));
  for (std::int64_t r = 0; r < product.rows; ++r) {
    for (std::int64_t i = 0; i < product.weights.inputs; ++i) {
      const float rounded = round_to_bf16(product.x[static_cast<std::size_t>(r * product.weights.inputs + i)]);
      rows[static_cast<std::size_t>(r * row_bytes / 2 + i)] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
    }
  }
  return rows;
}

TEST_F(EmulatedAmx, HalfProductsAreThoseOfRoundedOperandsAndDoNotDependOnOtherRows) {
  if (!cpu_features().avx512_bf16) GTEST_SKIP() << "needs AVX-512 BF16";
  Random random(13);
  for (int round = 0; round < 12; ++round) {
    const WeightType type = round % 2 == 0 ? WeightType::kF16 : WeightType::kBF16;
    const std::int64_t inputs = test::uniform(random, 1, 600);
    const std::int64_t outputs = test::uniform(random, 1, 70);
    const Product product(random, type, outputs, inputs, test::uniform(random, 1, 50));
    const std::int64_t row_bytes = (inputs + 31) / 32 * 64;
    const std::vector<std::uint16_t> x = bf16_rows(product, row_bytes);
    std::vector<float> found(static_cast<std::size_t>(product.rows * outputs));
    MatmulArgs args{&product.weights, reinterpret_cast<const std::byte*>(x.data()), product.rows, found.data(), outputs, false};
    test::emulated_matmul_bf16(args, row_bytes, 0, product.weights.panels());
    std::vector<float> weights(static_cast<std::size_t>(inputs));
    std::vector<float> alone(static_cast<std::size_t>(outputs));
    for (std::int64_t r = 0; r < product.rows; ++r) {
      const MatmulArgs one{&product.weights, args.prepared + r * row_bytes, 1, alone.data(), outputs, false};
      test::emulated_matmul_bf16(one, row_bytes, 0, product.weights.panels());
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), found.begin() + r * outputs));
    }
    for (std::int64_t o = 0; o < outputs; ++o) {
      unpack_row(product.weights, o, weights.data());
      double expected = 0, size = 0;
      for (std::int64_t k = 0; k < inputs; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const double term = static_cast<double>(round_to_bf16(weights[i])) * static_cast<double>(round_to_bf16(product.x[i]));
        expected += term;
        size += std::fabs(term);
      }
      EXPECT_NEAR(found[static_cast<std::size_t>(o)], expected, 1e-6 * size) << weight_format(type)->name;
    }
  }
}

}  // namespace
}  // namespace braid::kernels
