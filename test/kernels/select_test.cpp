#include "kernels/select.h"

#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

TEST(Select, NamesParse) {
  EXPECT_EQ(parse_isa("scalar"), Isa::kScalar);
  EXPECT_EQ(parse_isa("neon"), Isa::kNeon);
  EXPECT_EQ(parse_isa("avx2"), Isa::kAvx2);
  EXPECT_EQ(parse_isa("avx512"), Isa::kAvx512);
  EXPECT_EQ(parse_isa("amx"), Isa::kAmx);
  EXPECT_EQ(parse_isa("AVX2"), std::nullopt);
}

TEST(Select, ATierIsGivenOrItsLackIsNamed) {
  for (const Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    std::string missing;
    const KernelTable* table = kernel_table(isa, missing);
    EXPECT_NE(table == nullptr, missing.empty());
    EXPECT_TRUE(table == nullptr || table->isa == isa);
    EXPECT_EQ(kernel_table(isa, missing), table);
  }
}

TEST(Select, TheBestTierIsOneTheMachineHas) {
  std::string missing;
  EXPECT_EQ(kernel_table(best_kernel_table().isa, missing), &best_kernel_table());
}

}  // namespace
}  // namespace braid::kernels
