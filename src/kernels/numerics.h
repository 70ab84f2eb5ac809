// Constants of the numerics contract that every tier shares. Constants only: sources compiled for a wide ISA include this file, so
// it must not define functions.
#pragma once

#include <cstdint>

namespace braid::kernels {

// Float reductions keep kLanes partial results, lane i taking elements i, i + kLanes, ..., and add them as a tree: lane i + lane
// i + 8, then i + 4, i + 2, i + 1.
constexpr int kLanes = 16;

// Values whose masses are summed together (KernelTable::masses_above); a whole number of lanes.
constexpr std::int64_t kMassRun = 256;

// Values that share a scale in quantised weights and in the activations that meet them.
constexpr std::int64_t kBlockValues = 32;

// Attention sums over chunks of this many positions, aligned to position 0, and combines the chunks in order (online softmax).
constexpr std::int32_t kChunkTokens = 256;

// Query vectors that share one pass over keys and values. Not part of the contract: a query's result does not depend on it.
constexpr std::int32_t kQueryTile = 24;

// Blocks of activations smaller than this become zeros, so that 127 / amax stays finite.
constexpr float kSmallestAmax = 1e-30F;

// exp(x) = 2^n * (1 + r + r^2 * q(r)), n = round(x * log2(e)), r = x - n * ln(2) in two parts. q interpolates
// (exp(r) - 1 - r) / r^2 at the Chebyshev nodes of [-ln(2)/2, ln(2)/2]; the relative error stays under 1.2e-7. Below kExpLowest the
// result is 0, above kExpHighest that of kExpHighest.
constexpr float kExpLowest = -87.0F;
constexpr float kExpHighest = 88.0F;
constexpr float kLog2E = 0x1.715476p+0F;
constexpr float kLn2High = 0x1.62e4p-1F;
constexpr float kLn2Low = 0x1.7f7d1cp-20F;
constexpr float kExpQ0 = 0.5F;
constexpr float kExpQ1 = 0x1.5554dep-3F;
constexpr float kExpQ2 = 0x1.55551ap-5F;
constexpr float kExpQ3 = 0x1.120b62p-7F;
constexpr float kExpQ4 = 0x1.6d10fcp-10F;

// gelu(x) = x / (1 + exp(x * (kGeluLinear + kGeluCubic * x^2))): the approximation by tanh of Hendrycks and Gimpel (2016), since
// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)). kGeluLinear = -2 sqrt(2 / pi), kGeluCubic = 0.044715 times it.
constexpr float kGeluLinear = -1.59576912F;
constexpr float kGeluCubic = -0.0713548163F;

// 1.5 * 2^23: adding it rounds a float under 2^22 to an integer, half to even, held in the low bits of the sum.
constexpr float kRoundMagic = 12582912.0F;
constexpr std::int32_t kRoundMagicBits = 0x4B400000;

}  // namespace braid::kernels
