// Which of the types that are no codes a matrix has, for kernels that are templates of it.
#pragma once

#include "kernels/weight_type.h"

#include <cassert>

namespace braid::kernels {

// Calls `visitor`, whose template parameter is a WeightType, with `type`, which is kF32, kF16 or kBF16.
template <class Visitor>
void with_float_type(WeightType type, const Visitor& visitor) {
  switch (type) {
    case WeightType::kF32:
      return visitor.template operator()<WeightType::kF32>();
    case WeightType::kF16:
      return visitor.template operator()<WeightType::kF16>();
    case WeightType::kBF16:
      return visitor.template operator()<WeightType::kBF16>();
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ8_0:
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
    case WeightType::kQ6_K:
    case WeightType::kIQ4_NL:
    case WeightType::kIQ4_XS:
    case WeightType::kMXFP4:
    case WeightType::kRotated8:
      assert(false);  // a matrix of codes
  }
}

}  // namespace braid::kernels
