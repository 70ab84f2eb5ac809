#include "kernels/attention_view.h"
#include "kernels/emulated_tiles.h"
#include "kernels/half.h"
#include "kernels/tiers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <tuple>

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

// A pool that holds sequences in shuffled blocks, filled with NaNs where nothing was stored.
struct Pool {
  Pool(Random& random, KvType type, std::int32_t block_tokens, std::int32_t head_dim, std::int32_t kv_heads, std::int32_t tokens,
       bool latent = false)
      : bytes(make(type, block_tokens, head_dim, kv_heads, (tokens + block_tokens - 1) / block_tokens, latent)) {
    std::memset(bytes.data(), 0xFF, bytes.size());
    layer.base = bytes.data();
    blocks.resize(static_cast<std::size_t>((tokens + block_tokens - 1) / block_tokens));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    keys = test::random_floats(random, std::int64_t{tokens} * kv_heads * head_dim);
    values = test::random_floats(random, std::int64_t{tokens} * kv_heads * head_dim);
  }

  std::size_t make(KvType type, std::int32_t block_tokens, std::int32_t head_dim, std::int32_t kv_heads, std::int32_t blocks_needed,
                   bool latent) {
    const std::size_t value_bytes = type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2;
    layer.type = type;
    layer.block_tokens = block_tokens;
    layer.head_dim = head_dim;
    layer.kv_heads = kv_heads;
    layer.latent = latent;
    const std::size_t copies = latent ? 1 : 2;
    const std::size_t half = static_cast<std::size_t>(block_tokens * head_dim) * value_bytes;
    layer.value_offset = (copies - 1) * half;
    layer.scale_offset = copies * half;
    const std::size_t scales = type == KvType::kInt8 ? static_cast<std::size_t>(2 * kv_groups(head_dim) * block_tokens) : 0;
    layer.head_stride = layer.scale_offset + copies * scales;
    layer.block_stride = layer.head_stride * static_cast<std::size_t>(kv_heads);
    return layer.block_stride * static_cast<std::size_t>(blocks_needed);
  }

  void store(const KernelTable& tier, std::int32_t begin, std::int32_t end) const {
    const std::int32_t width = layer.kv_heads * layer.head_dim;
    for (std::int32_t t = begin; t < end; ++t) {
      tier.kv_store(layer, blocks[static_cast<std::size_t>(t / layer.block_tokens)], t % layer.block_tokens,
                    keys.data() + std::int64_t{t} * width, values.data() + std::int64_t{t} * width);
    }
  }

  KvLayer layer;
  AlignedBytes bytes;
  std::vector<std::int32_t> blocks;
  std::vector<float> keys;
  std::vector<float> values;
};

// What the tests vary of AttentionArgs.
struct Rule {
  std::int32_t window = 0;
  std::int32_t sink = 0;
  float score_cap = 0.0F;
  const float* slopes = nullptr;
  const float* sinks = nullptr;
};

// Of as many heads as any test has.
constexpr std::array<float, 32> kSlopes = {0.5F,   0.01F, 0.0F,  0.125F, 0.9F,   0.003F, 0.25F, 0.06F, 0.7F,    0.02F, 0.3F,
                                           0.001F, 0.4F,  0.15F, 0.08F,  0.6F,   0.005F, 0.35F, 0.04F, 0.0625F, 0.2F,  0.8F,
                                           0.03F,  0.45F, 0.1F,  0.55F,  0.007F, 0.65F,  0.09F, 0.75F, 0.02F,   1.0F};

// Above and below all scores, and among them.
constexpr std::array<float, 32> kSinks = {12.0F, 0.5F, -9.0F, 3.0F, 0.0F,  -1.0F, 7.0F,  2.0F,  -3.0F, 1.0F,  4.0F,
                                          -0.5F, 6.0F, -2.0F, 5.0F, 0.25F, 8.0F,  -4.0F, 1.5F,  2.5F,  -6.0F, 3.5F,
                                          0.75F, 9.0F, -7.0F, 4.5F, -1.5F, 5.5F,  10.0F, -2.5F, 6.5F,  11.0F};

AttentionArgs arguments(const KvLayer& kv, const std::vector<AttentionRow>& rows, const std::vector<float>& queries, std::int32_t heads,
                        const Rule& rule) {
  AttentionArgs args;
  args.kv = &kv;
  args.rows = rows.data();
  args.queries = queries.data();
  args.query_stride = args.out_stride = std::int64_t{heads} * kv.head_dim;
  args.heads = heads;
  args.window = rule.window;
  args.sink = rule.sink;
  args.score_cap = rule.score_cap;
  args.slopes = rule.slopes;
  args.sinks = rule.sinks;
  args.scale = 1.0F / std::sqrt(static_cast<float>(kv.head_dim));
  return args;
}

std::vector<float> attend(const KernelTable& tier, const KvLayer& kv, const std::vector<AttentionRow>& rows,
                          const std::vector<float>& queries, std::int32_t heads, const Rule& rule = {}) {
  std::vector<float> out(queries.size());
  AlignedBytes scratch(tier.attention_scratch_bytes(heads, kv.head_dim, kv.latent));
  AttentionArgs args = arguments(kv, rows, queries, heads, rule);
  args.out = out.data();
  args.scratch = scratch.data();
  tier.attention(args, 0, static_cast<std::int64_t>(rows.size()), 0, kv.kv_heads);
  return out;
}

// The same by parts that are joined.
std::vector<float> attend_in_parts(const KernelTable& tier, const KvLayer& kv, const std::vector<AttentionRow>& rows,
                                   const std::vector<float>& queries, std::int32_t heads, const Rule& rule) {
  std::vector<float> out(queries.size());
  AlignedBytes scratch(tier.attention_scratch_bytes(heads, kv.head_dim, kv.latent));
  AttentionArgs args = arguments(kv, rows, queries, heads, rule);
  args.out = out.data();
  args.scratch = scratch.data();
  const std::int64_t stride = heads / kv.kv_heads * part_floats(kv.head_dim);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::int32_t> chunks;
    const std::int32_t position = rows[row].position;
    for (std::int32_t chunk = first_chunk(args, position); chunk <= position; chunk = next_chunk(args, position, chunk))
      if (sees(view_of_chunk(args, position, chunk), chunk)) chunks.push_back(chunk);
    for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
      AlignedBytes parts(chunks.size() * static_cast<std::size_t>(stride) * sizeof(float));
      auto* floats = reinterpret_cast<float*>(parts.data());
      for (std::size_t i = chunks.size(); i-- > 0;)
        tier.attention_part(args, static_cast<std::int64_t>(row), head, chunks[i], floats + static_cast<std::int64_t>(i) * stride);
      tier.attention_join(args, static_cast<std::int64_t>(row), head, floats, static_cast<std::int64_t>(chunks.size()), stride);
    }
  }
  return out;
}

class Attention : public testing::TestWithParam<const KernelTable*> {};

std::vector<const KernelTable*> tiers() {
  std::vector<const KernelTable*> tiers = test::machine_tiers();
#if defined(__x86_64__)
  if (const KernelTable* emulated = test::emulated_attention()) tiers.push_back(emulated);
#endif
  return tiers;
}

INSTANTIATE_TEST_SUITE_P(Tiers, Attention, testing::ValuesIn(tiers()), test::TierName());

// Whether the tier rounds queries, keys, weights and values to bf16 over such a pool.
bool rounds_to_bf16(const KernelTable& tier, KvType type) { return tier.isa == Isa::kAmx && type != KvType::kF32; }

// One row over `heads` heads, straight from the formula.
std::vector<double> definition(const Pool& pool, std::int32_t position, const std::vector<float>& queries, std::int32_t heads,
                               const Rule& rule) {
  const std::int32_t head_dim = pool.layer.head_dim;
  const std::int32_t kv_heads = pool.layer.kv_heads;
  std::vector<double> out;
  for (std::int32_t h = 0; h < heads; ++h) {
    const float* query = queries.data() + h * head_dim;
    const auto offset = [&](std::int32_t t) { return (t * kv_heads + h / (heads / kv_heads)) * head_dim; };
    std::vector<double> weights;
    for (std::int32_t t = 0; t <= position; ++t) {
      double score = std::inner_product(query, query + head_dim, pool.keys.data() + offset(t), 0.0) / std::sqrt(head_dim);
      if (rule.score_cap != 0.0F) score = static_cast<double>(rule.score_cap) * std::tanh(score / static_cast<double>(rule.score_cap));
      if (rule.slopes != nullptr) score += static_cast<double>(rule.slopes[h]) * (t - position);
      weights.push_back(rule.window == 0 || t > position - rule.window || t < rule.sink ? std::exp(score) : 0.0);
    }
    const double sink = rule.sinks != nullptr ? std::exp(static_cast<double>(rule.sinks[h])) : 0.0;
    const double total = std::accumulate(weights.begin(), weights.end(), sink);
    for (std::int32_t d = 0; d < head_dim; ++d) {
      double sum = 0;
      for (std::int32_t t = 0; t <= position; ++t)
        sum += weights[static_cast<std::size_t>(t)] * static_cast<double>(pool.values[static_cast<std::size_t>(offset(t) + d)]);
      out.push_back(sum / total);
    }
  }
  return out;
}

constexpr Rule kRules[] = {{},
                           {.window = 1},
                           {.window = 100},
                           {.window = 300},
                           {.window = 64, .sink = 4},
                           {.window = 290, .sink = 300},
                           {.window = 5000, .sink = 16},
                           {.score_cap = 3.0F},
                           {.slopes = kSlopes.data()},
                           {.window = 300, .score_cap = 3.0F, .slopes = kSlopes.data()},
                           {.sinks = kSinks.data()},
                           {.window = 40, .sinks = kSinks.data()},
                           {.window = 200, .sink = 1, .score_cap = 1.0F}};

TEST_P(Attention, EqualsTheDefinitionInDouble) {
  Random random(1);
  const std::int32_t heads = 4;
  const std::int32_t tokens = 600;
  for (const std::int32_t head_dim : {24, 80}) {
    // What rounding keys and values to the type may cost here: a few times their last digit.
    for (const auto& [type, bound] : {std::pair{KvType::kF32, 1e-5}, {KvType::kF16, 2e-3}, {KvType::kBF16, 2e-2}, {KvType::kInt8, 2e-2}}) {
      Pool pool(random, type, 16, head_dim, 2, tokens);
      pool.store(*GetParam(), 0, tokens);
      const std::vector<float> queries = test::random_floats(random, heads * head_dim, 2.0F);
      for (const Rule& rule : kRules) {
        for (const std::int32_t position : {tokens - 1, 255, 63}) {
          const std::vector<float> out = attend(*GetParam(), pool.layer, {{pool.blocks.data(), position}}, queries, heads, rule);
          const std::vector<double> expected = definition(pool, position, queries, heads, rule);
          for (std::size_t i = 0; i < out.size(); ++i)
            ASSERT_NEAR(out[i], expected[i], rounds_to_bf16(*GetParam(), type) ? 3e-2 : bound)
                << "window " << rule.window << " sink " << rule.sink << " position " << position;
        }
      }
    }
  }
}

// Another block stands for them, here one that holds NaNs, as one with the floats of a recurrent state may. Of 200 tokens sinks and window
// lie in one chunk.
TEST_P(Attention, BlocksOutOfTheWindowMayBeAbsent) {
  Random random(6);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    for (const auto& [block_tokens, latent, tokens] : {std::tuple{8, false, 1100},
                                                       {32, false, 1100},
                                                       {8, true, 1100},
                                                       {32, true, 1100},
                                                       {8, false, 200},
                                                       {16, false, 200},
                                                       {32, false, 200},
                                                       {32, true, 200}}) {
      Pool pool(random, type, block_tokens, 32, 2, tokens + block_tokens, latent);
      std::iter_swap(std::ranges::find(pool.blocks, 0), pool.blocks.end() - 1);  // behind all tokens
      pool.store(*GetParam(), 0, tokens);
      for (const Rule rule : {Rule{.window = 130}, Rule{.window = 40, .sink = 20}}) {
        std::vector<AttentionRow> rows;
        for (std::int32_t t = tokens - 9; t < tokens; ++t) rows.push_back({pool.blocks.data(), t});
        const std::vector<float> queries = test::random_floats(random, 9 * 4 * 32, 2.0F);
        const std::vector<float> whole = attend(*GetParam(), pool.layer, rows, queries, 4, rule);
        std::vector<std::int32_t> blocks = pool.blocks;
        const std::int32_t first_seen = tokens - 9 + 1 - rule.window;
        for (std::int32_t b = (rule.sink + block_tokens - 1) / block_tokens; b < first_seen / block_tokens; ++b)
          blocks[static_cast<std::size_t>(b)] = -1;
        EXPECT_GE(std::ranges::count(blocks, -1), 1) << rule.window;
        for (AttentionRow& row : rows) row.blocks = blocks.data();
        EXPECT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, 4, rule), whole));
        EXPECT_TRUE(test::same_bits(attend_in_parts(*GetParam(), pool.layer, rows, queries, 4, rule), whole));
      }
    }
  }
}

TEST_P(Attention, StoredTokensEqualScalar) {
  Random random(2);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    for (const std::int32_t head_dim : {2, 18, 64, 100}) {
      Pool pool(random, type, 8, head_dim, 3, 20);
      for (int d = 0; d < head_dim; ++d) pool.keys[static_cast<std::size_t>(d)] = 0.0F;      // a scale of zero
      for (int d = 0; d < head_dim; ++d) pool.values[static_cast<std::size_t>(d)] *= 1e-6F;  // one that is not normal
      pool.store(test::scalar_tier(), 0, 20);
      const std::vector<std::byte> expected(pool.bytes.data(), pool.bytes.data() + pool.bytes.size());
      std::memset(pool.bytes.data(), 0xFF, pool.bytes.size());
      pool.store(*GetParam(), 0, 20);
      EXPECT_EQ(std::memcmp(pool.bytes.data(), expected.data(), expected.size()), 0);
    }
  }
}

TEST_P(Attention, Bf16IsStoredInPairsWithFiniteValues) {
  Random random(9);
  for (const std::int32_t head_dim : {18, 64}) {
    Pool pool(random, KvType::kBF16, 16, head_dim, 1, 16);
    pool.values[0] = std::numeric_limits<float>::infinity();
    pool.values[1] = -std::numeric_limits<float>::infinity();
    pool.values[2] = std::numeric_limits<float>::quiet_NaN();
    pool.values[3] = std::numeric_limits<float>::max();  // rounds to infinity
    pool.store(*GetParam(), 0, 16);
    for (std::int32_t t = 0; t < 16; ++t) {
      for (std::int32_t d = 0; d < head_dim; ++d) {
        const auto at = static_cast<std::size_t>(t * head_dim + d);
        const std::byte* key = pool.layer.base + ((d / 2 * 16 + t) * 2 + d % 2) * 2;
        const std::byte* value = pool.layer.base + pool.layer.value_offset + ((t / 2 * head_dim + d) * 2 + t % 2) * 2;
        EXPECT_EQ(load_half(key), float_to_bf16(pool.keys[at]));
        const std::uint16_t expected = at >= 4 ? float_to_bf16(pool.values[at]) : at == 1 ? 0xFF7F : 0x7F7F;
        EXPECT_EQ(load_half(value), expected);
      }
    }
  }
}

TEST_P(Attention, Int8CodesAreWithinHalfAStepOfTheirValues) {
  Random random(8);
  const std::int32_t head_dim = 80;
  Pool pool(random, KvType::kInt8, 8, head_dim, 1, 8);
  pool.store(*GetParam(), 0, 8);
  const std::byte* base = pool.layer.base;
  for (std::int32_t t = 0; t < 8; ++t) {
    for (std::int32_t d = 0; d < head_dim; ++d) {
      const std::byte* scales = base + pool.layer.scale_offset + (d / kKvGroup * 8 + t) * 2;
      const float key_scale = f16_to_float(load_half(scales));
      const float value_scale = f16_to_float(load_half(scales + kv_groups(head_dim) * 8 * 2));
      const auto key = static_cast<std::int8_t>(base[d * 8 + t]);
      const auto value = static_cast<std::int8_t>(base[static_cast<std::int32_t>(pool.layer.value_offset) + t * head_dim + d]);
      const auto at = static_cast<std::size_t>(t * head_dim + d);
      // Half a step, and the cut of the largest code where the scale was rounded down.
      EXPECT_NEAR(key * key_scale, pool.keys[at], 0.57F * key_scale);
      EXPECT_NEAR(value * value_scale, pool.values[at], 0.57F * value_scale);
    }
  }
}

TEST_P(Attention, EqualsScalarAndItsPartsBitForBit) {
  Random random(3);
  const std::int32_t dims[] = {2, 16, 18, 34, 64, 80, 128};
  const KvType types[] = {KvType::kF16, KvType::kF32, KvType::kBF16, KvType::kInt8};
  for (int round = 0; round < 132; ++round) {
    const KvType type = types[round % 4];
    const Rule& rule = kRules[static_cast<std::size_t>(round) / 4 % std::size(kRules)];
    const std::int32_t block_tokens = 8 << (round / 4 % 4);
    const std::int32_t head_dim = dims[round % 7];
    const std::int32_t kv_heads = test::uniform(random, 1, 3);
    const std::int32_t heads = kv_heads * test::uniform(random, 1, 9);
    const std::int32_t tokens = round % 5 == 0 ? test::uniform(random, 200, 600) : test::uniform(random, 1, 70);
    Pool pool(random, type, block_tokens, head_dim, kv_heads, tokens);
    pool.store(test::scalar_tier(), 0, tokens);
    std::vector<AttentionRow> rows;
    for (std::int32_t t = std::max(0, tokens - test::uniform(random, 1, 12)); t < tokens; ++t) rows.push_back({pool.blocks.data(), t});
    const std::vector<float> queries = test::random_floats(random, static_cast<std::int64_t>(rows.size()) * heads * head_dim, 2.0F);
    const bool rounds = rounds_to_bf16(*GetParam(), type);
    const std::vector<float> expected = attend(rounds ? *GetParam() : test::scalar_tier(), pool.layer, rows, queries, heads, rule);
    ASSERT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads, rule), expected) &&
                test::same_bits(attend_in_parts(*GetParam(), pool.layer, rows, queries, heads, rule), expected))
        << "window " << rule.window << " sink " << rule.sink << " type " << static_cast<int>(type) << " block_tokens " << block_tokens
        << " head_dim " << head_dim << " heads " << heads << "/" << kv_heads << " tokens " << tokens;
  }
}

// One result for a token, whether it was the last one stored, whether other rows of its sequence or of others are computed with it,
// and whatever range of heads a thread takes.
TEST_P(Attention, ARowDependsOnItsOwnPastOnly) {
  Random random(4);
  const std::int32_t heads = 6;
  const std::int32_t tokens = 300;
  for (const auto& [type, head_dim] : {std::pair{KvType::kF16, 32}, {KvType::kBF16, 32}, {KvType::kInt8, 80}, {KvType::kF32, 32}}) {
    const std::int64_t width = heads * head_dim;
    Pool pool(random, type, 16, head_dim, 3, tokens);
    const std::vector<float> queries = test::random_floats(random, tokens * width);
    std::vector<float> alone;
    for (std::int32_t t = 0; t < tokens; ++t) {  // stored up to t only: what lies beyond is NaN
      pool.store(*GetParam(), t, t + 1);
      const std::vector<float> query(queries.begin() + t * width, queries.begin() + (t + 1) * width);
      const std::vector<float> out = attend(*GetParam(), pool.layer, {{pool.blocks.data(), t}}, query, heads);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    std::vector<AttentionRow> rows;
    for (std::int32_t t = 0; t < tokens; ++t) rows.push_back({pool.blocks.data(), t});
    EXPECT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads), alone)) << static_cast<int>(type);
    std::vector<std::int32_t> same_blocks = pool.blocks;  // a second sequence with the same past
    for (std::size_t r = 1; r < rows.size(); r += 2) rows[r].blocks = same_blocks.data();
    EXPECT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads), alone)) << static_cast<int>(type);
  }
}

// A pool of latents holds one copy where another one holds the same vectors as keys and as values.
TEST_P(Attention, LatentsAreKeysAndValuesBitForBit) {
  Random random(12);
  const KvType types[] = {KvType::kF16, KvType::kF32, KvType::kBF16, KvType::kInt8};
  for (int round = 0; round < 104; ++round) {
    const KvType type = types[round % 4];
    const Rule& rule = kRules[static_cast<std::size_t>(round) / 4 % std::size(kRules)];
    const std::int32_t block_tokens = 8 << (round / 4 % 4);
    const std::int32_t head_dim = std::array{18, 64, 100, 576, 32}[static_cast<std::size_t>(round) % 5];
    const std::int32_t heads = test::uniform(random, 1, GetParam()->isa == Isa::kScalar ? 3 : 32);
    const std::int32_t tokens = round % 3 == 0 ? test::uniform(random, 200, 600) : test::uniform(random, 1, 70);
    Pool twice(random, type, block_tokens, head_dim, 1, tokens);
    twice.values = twice.keys;
    twice.store(*GetParam(), 0, tokens);
    Pool once(random, type, block_tokens, head_dim, 1, tokens, true);
    once.keys = twice.keys;
    once.blocks = twice.blocks;
    once.store(*GetParam(), 0, tokens);
    std::vector<AttentionRow> rows;
    for (std::int32_t t = std::max(0, tokens - test::uniform(random, 1, 12)); t < tokens; ++t) rows.push_back({twice.blocks.data(), t});
    const std::vector<float> queries = test::random_floats(random, static_cast<std::int64_t>(rows.size()) * heads * head_dim, 2.0F);
    const std::vector<float> expected = attend(*GetParam(), twice.layer, rows, queries, heads, rule);
    ASSERT_TRUE(test::same_bits(attend(*GetParam(), once.layer, rows, queries, heads, rule), expected) &&
                test::same_bits(attend_in_parts(*GetParam(), once.layer, rows, queries, heads, rule), expected))
        << "window " << rule.window << " sink " << rule.sink << " type " << static_cast<int>(type) << " block_tokens " << block_tokens
        << " head_dim " << head_dim << " heads " << heads << " tokens " << tokens;
  }
}

TEST_P(Attention, AValueThatIsNoNumberShowsInTheRowsThatSeeIt) {
  Random random(6);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    Pool pool(random, type, 16, 16, 1, 40);
    std::fill_n(pool.values.begin() + 20 * 16, 16, std::numeric_limits<float>::quiet_NaN());
    pool.store(*GetParam(), 0, 40);
    std::vector<AttentionRow> rows;
    for (std::int32_t t = 19; t < 40; ++t) rows.push_back({pool.blocks.data(), t});
    const std::vector<float> out = attend(*GetParam(), pool.layer, rows, test::random_floats(random, 21 * 16), 1);
    EXPECT_LT(std::abs(out[0]), 10.0F) << static_cast<int>(type);
    // Tiles take finite numbers only, so there it is a very large one, whose square a norm cannot hold.
    for (std::size_t r = 1; r < rows.size(); ++r) EXPECT_FALSE(std::abs(out[r * 16]) < 1e20F) << static_cast<int>(type) << " row " << r;
  }
}

TEST_P(Attention, AnInfinityInALaterTokenDoesNotReachEarlierRows) {
  Random random(5);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    Pool pool(random, type, 16, 16, 1, 40);
    pool.store(*GetParam(), 0, 40);
    std::vector<AttentionRow> rows;
    for (std::int32_t t = 30; t < 40; ++t) rows.push_back({pool.blocks.data(), t});
    const std::vector<float> queries = test::random_floats(random, 10 * 16);
    const std::vector<float> before = attend(*GetParam(), pool.layer, rows, queries, 1);
    std::fill_n(pool.values.begin() + 39 * 16, 16, std::numeric_limits<float>::infinity());
    pool.store(*GetParam(), 39, 40);
    const std::vector<float> after = attend(*GetParam(), pool.layer, rows, queries, 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 9 * 16, after.begin())) << static_cast<int>(type);
    if (type == KvType::kInt8) continue;  // codes of 0 and a scale of infinity: the row itself may be anything
    EXPECT_GT(after[9 * 16], 1e30F);
  }
}

}  // namespace
}  // namespace braid::kernels
