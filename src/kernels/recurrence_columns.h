// Layers with a state, some vectors of columns at once, which stay in the nearest cache while all tokens pass. `Vector` is a tier's: its
// Type, kLanes, load, store, spread, multiply, fused (a * b + c) and silu. Internal linkage only.
#pragma once

#include "kernels/recurrence.h"

#include <cmath>

namespace braid::kernels {

// Columns that make no whole vector go one by one: Single is a Vector of one lane.
template <class Vector, class Single>
struct RecurrenceColumns {
  // As many chains as hide a multiply-add's latency, and few enough for the registers.
  static constexpr int kMost = 4;

  static void convolve(const ConvolutionArgs& args, std::int64_t begin, std::int64_t end) {
    std::int64_t i = begin;
    for (; i + Vector::kLanes <= end; i += Vector::kLanes) convolve<Vector>(args, i);
    for (; i < end; ++i) convolve<Single>(args, i);
  }

  static void scan(const SelectiveScanArgs& args) {
    each_column(args.columns, [&]<class V, int kCount>(std::int64_t column) { scan<V, kCount>(args, column); });
  }

  static void delta_rule(const DeltaRuleArgs& args) {
    each_column(args.columns, [&]<class V, int kCount>(std::int64_t column) { delta_rule<V, kCount>(args, column); });
  }

 private:
  template <class Work>
  static void each_column(std::int64_t columns, const Work& work) {
    std::int64_t i = 0;
    for (; i + kMost * Vector::kLanes <= columns; i += kMost * Vector::kLanes) work.template operator()<Vector, kMost>(i);
    for (; i + Vector::kLanes <= columns; i += Vector::kLanes) work.template operator()<Vector, 1>(i);
    for (; i < columns; ++i) work.template operator()<Single, 1>(i);
  }

  template <class V>
  static void convolve(const ConvolutionArgs& args, std::int64_t i) {
    auto sum = args.bias != nullptr ? V::load(args.bias + i) : V::spread(0.0F);
    for (std::int32_t tap = 0; tap < args.taps; ++tap)
      sum = V::fused(V::load(args.weights + tap * args.stride + i), V::load(args.inputs[tap] + i), sum);
    V::store(args.out + i, args.silu ? V::silu(sum) : sum);
  }

  template <class V, int kCount>
  static void scan(const SelectiveScanArgs& args, std::int64_t column) {
    for (std::int64_t token = 0; token < args.tokens; ++token) {
      const float* x = args.x + token * args.stride + column;
      const float* b = args.b + token * args.stride;
      const float* c = args.c + token * args.stride;
      const auto decay = V::spread(args.decay[token]);
      typename V::Type added[kCount];
      typename V::Type sum[kCount];
      for (int i = 0; i < kCount; ++i) {
        const auto value = V::load(x + i * V::kLanes);
        added[i] = V::multiply(V::spread(args.step[token]), value);
        sum[i] = V::multiply(V::spread(args.skip), value);
      }
      float* state = args.state + column;
      for (std::int64_t row = 0; row < args.rows; ++row, state += args.columns) {
        const auto in = V::spread(b[row]);
        const auto out = V::spread(c[row]);
        for (int i = 0; i < kCount; ++i) {
          const auto h = V::fused(in, added[i], V::multiply(decay, V::load(state + i * V::kLanes)));
          V::store(state + i * V::kLanes, h);
          sum[i] = V::fused(out, h, sum[i]);
        }
      }
      for (int i = 0; i < kCount; ++i) V::store(args.out + token * args.out_stride + column + i * V::kLanes, sum[i]);
    }
  }

  template <class V, int kCount>
  static void delta_rule(const DeltaRuleArgs& args, std::int64_t column) {
    for (std::int64_t token = 0; token < args.tokens; ++token) {
      const float* key = args.key + token * args.stride;
      const float* query = args.query + token * args.stride;
      typename V::Type known[kCount];
      typename V::Type found[kCount];
      for (int i = 0; i < kCount; ++i) known[i] = found[i] = V::spread(0.0F);
      float* state = args.state + column;
      for (std::int64_t row = 0; row < args.rows; ++row, state += args.columns) {
        const auto k = V::spread(key[row]);
        const auto q = V::spread(query[row]);
        for (int i = 0; i < kCount; ++i) {
          const auto h = V::load(state + i * V::kLanes);
          known[i] = V::fused(k, h, known[i]);
          found[i] = V::fused(q, h, found[i]);
        }
      }
      const auto decay = V::spread(args.decay[token]);
      typename V::Type change[kCount];
      for (int i = 0; i < kCount; ++i) {
        const auto value = V::load(args.value + token * args.stride + column + i * V::kLanes);
        change[i] = V::multiply(V::spread(args.beta[token]), V::fused(V::spread(-args.decay[token]), known[i], value));
        const auto out = V::fused(V::spread(args.query_key[token]), change[i], V::multiply(decay, found[i]));
        V::store(args.out + token * args.out_stride + column + i * V::kLanes, out);
      }
      state = args.state + column;
      for (std::int64_t row = 0; row < args.rows; ++row, state += args.columns) {
        const auto k = V::spread(key[row]);
        for (int i = 0; i < kCount; ++i)
          V::store(state + i * V::kLanes, V::fused(k, change[i], V::multiply(decay, V::load(state + i * V::kLanes))));
      }
    }
  }
};

}  // namespace braid::kernels
