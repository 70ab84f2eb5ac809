// What the kernels of layers with a state take: one head (or some channels) of one sequence, and tokens one after the other. Columns of a
// state are independent chains in the order of its rows, so that tiers, slices and threads give the same bits.
#pragma once

#include <cstdint>

namespace braid::kernels {

// out[c] = bias[c] + sum_t taps[t, c] * inputs[t][c]
struct ConvolutionArgs {
  const float* const* inputs = nullptr;  // [taps], the oldest first
  const float* weights = nullptr;        // [taps, from one to the next `stride`]
  const float* bias = nullptr;           // or null: zeros
  float* out = nullptr;
  std::int64_t stride = 0;
  std::int32_t taps = 0;
  bool silu = false;  // of what was summed
};

// Mamba-2's step, of `tokens` tokens:  h = decay h + b (step x)^T,  out = c h + skip x
struct SelectiveScanArgs {
  float* state = nullptr;  // [rows, columns]
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tokens = 0;
  const float *x = nullptr, *b = nullptr, *c = nullptr;  // of the first token; from one to the next `stride`
  std::int64_t stride = 0;
  const float *decay = nullptr, *step = nullptr;  // [tokens]
  float skip = 0.0F;
  float* out = nullptr;  // likewise, `out_stride`
  std::int64_t out_stride = 0;
};

// The gated delta rule (Yang et al. 2024), of `tokens` tokens:
//   change = beta (value - decay key h),  out = decay query h + (query key) change,  h = decay h + key change^T
struct DeltaRuleArgs {
  float* state = nullptr;  // [rows, columns]
  std::int64_t rows = 0;   // of a key
  std::int64_t columns = 0;
  std::int64_t tokens = 0;
  const float *query = nullptr, *key = nullptr, *value = nullptr;  // of the first token; from one to the next `stride`
  std::int64_t stride = 0;
  const float *decay = nullptr, *beta = nullptr, *query_key = nullptr;  // [tokens]
  float* out = nullptr;                                                 // likewise, `out_stride`
  std::int64_t out_stride = 0;
};

}  // namespace braid::kernels
