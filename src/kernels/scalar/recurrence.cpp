// Layers with a state, column by column.
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/tier.h"

#include <cmath>

namespace braid::kernels::scalar {

void convolve(const ConvolutionArgs& args, std::int64_t begin, std::int64_t end) noexcept {
  for (std::int64_t i = begin; i < end; ++i) {
    float sum = args.bias != nullptr ? args.bias[i] : 0.0F;
    for (std::int32_t tap = 0; tap < args.taps; ++tap) sum = std::fma(args.weights[tap * args.stride + i], args.inputs[tap][i], sum);
    args.out[i] = args.silu ? sum / (1.0F + exp(-sum)) : sum;
  }
}

void selective_scan(const SelectiveScanArgs& args) noexcept {
  for (std::int64_t column = 0; column < args.columns; ++column) {
    for (std::int64_t token = 0; token < args.tokens; ++token) {
      const float x = args.x[token * args.stride + column];
      const float added = args.step[token] * x;
      float sum = args.skip * x;
      for (std::int64_t row = 0; row < args.rows; ++row) {
        float& h = args.state[row * args.columns + column];
        h = std::fma(args.b[token * args.stride + row], added, args.decay[token] * h);
        sum = std::fma(args.c[token * args.stride + row], h, sum);
      }
      args.out[token * args.out_stride + column] = sum;
    }
  }
}

void delta_rule(const DeltaRuleArgs& args) noexcept {
  for (std::int64_t column = 0; column < args.columns; ++column) {
    for (std::int64_t token = 0; token < args.tokens; ++token) {
      const float* key = args.key + token * args.stride;
      const float* query = args.query + token * args.stride;
      const float decay = args.decay[token];
      float known = 0.0F;
      float found = 0.0F;
      for (std::int64_t row = 0; row < args.rows; ++row) {
        const float h = args.state[row * args.columns + column];
        known = std::fma(key[row], h, known);
        found = std::fma(query[row], h, found);
      }
      const float change = args.beta[token] * std::fma(-decay, known, args.value[token * args.stride + column]);
      args.out[token * args.out_stride + column] = std::fma(args.query_key[token], change, decay * found);
      for (std::int64_t row = 0; row < args.rows; ++row) {
        float& h = args.state[row * args.columns + column];
        h = std::fma(key[row], change, decay * h);
      }
    }
  }
}

}  // namespace braid::kernels::scalar
