// Layers with a state: every tier as the scalar one, the scalar one as the formulas say, and any division of the tokens alike.
#include "kernels/tiers.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace braid::kernels {
namespace {

using test::Random;

class Recurrence : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Recurrence, testing::ValuesIn(test::machine_tiers()), test::TierName());

struct Sizes {
  std::int64_t rows, columns, tokens;
};
constexpr Sizes kSizes[] = {{1, 1, 1}, {8, 12, 5}, {16, 64, 3}, {7, 83, 4}, {128, 128, 2}, {33, 150, 6}};

std::vector<float> of_range(Random& random, std::int64_t n, float low, float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<std::size_t>(n));
  std::ranges::generate(values, [&] { return uniform(random); });
  return values;
}

struct Chain {
  std::vector<float> state, out;
};

// All tokens at once, or `first` of them and then the rest.
template <class Run>
Chain in_two(const std::vector<float>& state, const Sizes& size, std::int64_t first, const Run& run) {
  Chain chain{state, std::vector<float>(static_cast<std::size_t>(size.tokens * size.columns))};
  run(chain, std::int64_t{0}, first);
  run(chain, first, size.tokens - first);
  return chain;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << i;
}

TEST_P(Recurrence, ConvolvesChannels) {
  Random random(1);
  for (const std::int64_t width : {1, 15, 16, 40, 100}) {
    for (const std::int32_t taps : {2, 3, 4, 7}) {
      const std::vector<float> weights = test::random_floats(random, taps * width);
      const std::vector<float> bias = test::random_floats(random, width);
      const std::vector<float> x = test::random_floats(random, taps * width);
      std::vector<const float*> inputs;
      for (std::int32_t tap = 0; tap < taps; ++tap) inputs.push_back(x.data() + tap * width);
      for (const bool biased : {false, true}) {
        for (const bool silu : {false, true}) {
          std::vector<float> found(x.size(), -1.0F);
          std::vector<float> expected(found);
          ConvolutionArgs args{.inputs = inputs.data(),
                               .weights = weights.data(),
                               .bias = biased ? bias.data() : nullptr,
                               .out = found.data(),
                               .stride = width,
                               .taps = taps,
                               .silu = silu};
          GetParam()->convolve(args, 0, width / 3);
          GetParam()->convolve(args, width / 3, width);
          args.out = expected.data();
          test::scalar_tier().convolve(args, 0, width);
          ASSERT_TRUE(test::same_bits(found, expected)) << width << " " << taps;
          for (std::int64_t i = 0; i < width; ++i) {
            double sum = biased ? bias[static_cast<std::size_t>(i)] : 0.0;
            for (std::int32_t tap = 0; tap < taps; ++tap)
              sum += static_cast<double>(weights[static_cast<std::size_t>(tap * width + i)]) * inputs[static_cast<std::size_t>(tap)][i];
            ASSERT_NEAR(found[static_cast<std::size_t>(i)], silu ? sum / (1 + std::exp(-sum)) : sum, 1e-5);
          }
        }
      }
    }
  }
}

TEST_P(Recurrence, ScansSelectively) {
  Random random(2);
  for (const Sizes& size : kSizes) {
    const std::int64_t stride = 2 * size.rows + size.columns + 3;
    const std::vector<float> in = test::random_floats(random, size.tokens * stride);
    const std::vector<float> decay = of_range(random, size.tokens, 0.2F, 1.0F);
    const std::vector<float> step = of_range(random, size.tokens, 0.0F, 1.0F);
    const std::vector<float> state = test::random_floats(random, size.rows * size.columns);
    const auto run = [&](const KernelTable& table) {
      return [&](Chain& chain, std::int64_t first, std::int64_t count) {
        const float* x = in.data() + first * stride;
        table.selective_scan({.state = chain.state.data(),
                              .rows = size.rows,
                              .columns = size.columns,
                              .tokens = count,
                              .x = x,
                              .b = x + size.columns,
                              .c = x + size.columns + size.rows,
                              .stride = stride,
                              .decay = decay.data() + first,
                              .step = step.data() + first,
                              .skip = 0.7F,
                              .out = chain.out.data() + first * size.columns,
                              .out_stride = size.columns});
      };
    };
    const Chain expected = in_two(state, size, 0, run(test::scalar_tier()));
    for (const std::int64_t first : {std::int64_t{0}, size.tokens / 2}) {
      const Chain found = in_two(state, size, first, run(*GetParam()));
      ASSERT_TRUE(test::same_bits(found.state, expected.state)) << size.rows << " " << size.columns;
      ASSERT_TRUE(test::same_bits(found.out, expected.out)) << size.rows << " " << size.columns;
    }
    std::vector<double> h(state.begin(), state.end());
    std::vector<double> out;
    for (std::int64_t token = 0; token < size.tokens; ++token) {
      const auto t = static_cast<std::size_t>(token);
      const float* x = in.data() + token * stride;
      for (std::int64_t column = 0; column < size.columns; ++column) {
        double sum = 0.7F * static_cast<double>(x[column]);
        for (std::int64_t row = 0; row < size.rows; ++row) {
          double& own = h[static_cast<std::size_t>(row * size.columns + column)];
          own = own * decay[t] + static_cast<double>(step[t]) * x[column] * x[size.columns + row];
          sum += own * x[size.columns + size.rows + row];
        }
        out.push_back(sum);
      }
    }
    expect_near(expected.state, h);
    expect_near(expected.out, out);
  }
}

TEST_P(Recurrence, FollowsTheDeltaRule) {
  Random random(3);
  for (const Sizes& size : kSizes) {
    const std::int64_t stride = 2 * size.rows + size.columns + 1;
    const std::vector<float> in = test::random_floats(random, size.tokens * stride, 1.0F / std::sqrt(static_cast<float>(size.rows)));
    const std::vector<float> decay = of_range(random, size.tokens, 0.2F, 1.0F);
    const std::vector<float> beta = of_range(random, size.tokens, 0.0F, 1.0F);
    const std::vector<float> state = test::random_floats(random, size.rows * size.columns);
    std::vector<float> products;
    for (std::int64_t token = 0; token < size.tokens; ++token) {
      const float* query = in.data() + token * stride;
      float sum = 0.0F;
      for (std::int64_t row = 0; row < size.rows; ++row) sum += query[row] * query[size.rows + row];
      products.push_back(sum);
    }
    const auto run = [&](const KernelTable& table) {
      return [&](Chain& chain, std::int64_t first, std::int64_t count) {
        const float* query = in.data() + first * stride;
        table.delta_rule({.state = chain.state.data(),
                          .rows = size.rows,
                          .columns = size.columns,
                          .tokens = count,
                          .query = query,
                          .key = query + size.rows,
                          .value = query + 2 * size.rows,
                          .stride = stride,
                          .decay = decay.data() + first,
                          .beta = beta.data() + first,
                          .query_key = products.data() + first,
                          .out = chain.out.data() + first * size.columns,
                          .out_stride = size.columns});
      };
    };
    const Chain expected = in_two(state, size, 0, run(test::scalar_tier()));
    for (const std::int64_t first : {std::int64_t{0}, size.tokens / 2}) {
      const Chain found = in_two(state, size, first, run(*GetParam()));
      ASSERT_TRUE(test::same_bits(found.state, expected.state)) << size.rows << " " << size.columns;
      ASSERT_TRUE(test::same_bits(found.out, expected.out)) << size.rows << " " << size.columns;
    }
    std::vector<double> h(state.begin(), state.end());
    std::vector<double> out;
    for (std::int64_t token = 0; token < size.tokens; ++token) {
      const auto t = static_cast<std::size_t>(token);
      const float* query = in.data() + token * stride;
      const float* key = query + size.rows;
      for (std::int64_t column = 0; column < size.columns; ++column) {
        const auto own = [&](std::int64_t row) -> double& { return h[static_cast<std::size_t>(row * size.columns + column)]; };
        double known = 0.0;
        for (std::int64_t row = 0; row < size.rows; ++row) known += (own(row) *= decay[t]) * key[row];
        const double change = beta[t] * (key[size.rows + column] - known);
        double sum = 0.0;
        for (std::int64_t row = 0; row < size.rows; ++row) sum += (own(row) += key[row] * change) * query[row];
        out.push_back(sum);
      }
    }
    expect_near(expected.state, h);
    expect_near(expected.out, out);
  }
}

}  // namespace
}  // namespace braid::kernels
