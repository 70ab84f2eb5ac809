#include "kernels/x86/cpu_features.h"

#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

TEST(CpuFeatures, ImplyThoseTheyBuildOn) {
  const CpuFeatures features = cpu_features();
  EXPECT_TRUE(!features.amx || features.avx512);
  EXPECT_TRUE(!features.avx512 || features.avx2_fma_f16c);
}

}  // namespace
}  // namespace braid::kernels
