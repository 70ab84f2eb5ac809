#include <gtest/gtest.h>
#include <kernels/half.h>
#include <kernels/tiers.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace braid::kernels {
namespace {

using test::AlignedBytes;
using test::Random;

// A pool that holds sequences in shuffled blocks, filled with NaNs where nothing was stored.
struct Pool {
  Pool(Random& random, KvType type, std::int32_t block_tokens, std::int32_t head_dim, std::int32_t kv_heads, std::int32_t tokens)
      : bytes(make(type, block_tokens, head_dim, kv_heads, (tokens + block_tokens - 1) / block_tokens)) {
    std::memset(bytes.data(), 0xFF, bytes.size());
    layer.base = bytes.data();
    blocks.resize(static_cast<std::size_t>((tokens + block_tokens - 1) / block_tokens));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    keys = test::random_floats(random, std::int64_t{tokens} * kv_heads * head_dim);
    values = test::random_floats(random, std::int64_t{tokens} * kv_heads * head_dim);
  }

  std::size_t make(KvType type, std::int32_t block_tokens, std::int32_t head_dim, std::int32_t kv_heads,
                   std::int32_t blocks_needed) {
    const std::size_t value_bytes = type == KvType::kF32 ? 4 : 2;
    layer.type = type;
    layer.block_tokens = block_tokens;
    layer.head_dim = head_dim;
    layer.kv_heads = kv_heads;
    layer.value_offset = static_cast<std::size_t>(block_tokens * head_dim) * value_bytes;
    layer.head_stride = 2 * layer.value_offset;
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

std::vector<float> attend(const KernelTable& tier, const KvLayer& kv, const std::vector<AttentionRow>& rows,
                          const std::vector<float>& queries, std::int32_t heads) {
  std::vector<float> out(queries.size());
  AlignedBytes scratch(tier.attention_scratch_bytes(heads, kv.head_dim));
  AttentionArgs args;
  args.kv = &kv;
  args.rows = rows.data();
  args.queries = queries.data();
  args.out = out.data();
  args.query_stride = args.out_stride = std::int64_t{heads} * kv.head_dim;
  args.heads = heads;
  args.scale = 1.0F / std::sqrt(static_cast<float>(kv.head_dim));
  args.scratch = scratch.data();
  tier.attention(args, 0, static_cast<std::int64_t>(rows.size()), 0, kv.kv_heads);
  return out;
}

class Attention : public testing::TestWithParam<const KernelTable*> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Attention, testing::ValuesIn(test::machine_tiers()), test::TierName());

TEST_P(Attention, EqualsTheDefinitionInDouble) {
  Random random(1);
  const std::int32_t heads = 4;
  const std::int32_t head_dim = 24;
  const std::int32_t tokens = 600;
  Pool pool(random, KvType::kF32, 16, head_dim, 2, tokens);
  pool.store(*GetParam(), 0, tokens);
  const std::vector<float> queries = test::random_floats(random, heads * head_dim, 2.0F);
  const std::vector<float> out = attend(*GetParam(), pool.layer, {{pool.blocks.data(), tokens - 1}}, queries, heads);
  for (std::int32_t h = 0; h < heads; ++h) {
    const float* query = queries.data() + h * head_dim;
    std::vector<double> weights;
    for (std::int32_t t = 0; t < tokens; ++t) {
      const float* key = pool.keys.data() + (t * 2 + h / 2) * head_dim;
      weights.push_back(std::exp(std::inner_product(query, query + head_dim, key, 0.0) / std::sqrt(24.0)));
    }
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::int32_t d = 0; d < head_dim; ++d) {
      double expected = 0;
      for (std::int32_t t = 0; t < tokens; ++t) {
        expected += weights[static_cast<std::size_t>(t)] * pool.values[static_cast<std::size_t>((t * 2 + h / 2) * head_dim + d)];
      }
      EXPECT_NEAR(out[static_cast<std::size_t>(h * head_dim + d)], expected / total, 1e-5);
    }
  }
}

TEST_P(Attention, StoredTokensEqualScalar) {
  Random random(2);
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    for (const std::int32_t head_dim : {2, 18, 64}) {
      Pool pool(random, type, 8, head_dim, 3, 20);
      pool.store(test::scalar_tier(), 0, 20);
      const std::vector<std::byte> expected(pool.bytes.data(), pool.bytes.data() + pool.bytes.size());
      std::memset(pool.bytes.data(), 0xFF, pool.bytes.size());
      pool.store(*GetParam(), 0, 20);
      EXPECT_EQ(std::memcmp(pool.bytes.data(), expected.data(), expected.size()), 0);
    }
  }
}

TEST_P(Attention, EqualsScalarBitForBit) {
  Random random(3);
  const std::int32_t dims[] = {2, 16, 18, 34, 64, 80, 128};
  for (int round = 0; round < 40; ++round) {
    const KvType type = round % 2 == 0 ? KvType::kF16 : KvType::kF32;
    const std::int32_t block_tokens = 8 << (round / 2 % 4);
    const std::int32_t head_dim = dims[round % 7];
    const std::int32_t kv_heads = test::uniform(random, 1, 3);
    const std::int32_t heads = kv_heads * test::uniform(random, 1, 9);
    const std::int32_t tokens = round % 5 == 0 ? test::uniform(random, 200, 600) : test::uniform(random, 1, 70);
    Pool pool(random, type, block_tokens, head_dim, kv_heads, tokens);
    pool.store(test::scalar_tier(), 0, tokens);
    std::vector<AttentionRow> rows;
    for (std::int32_t t = std::max(0, tokens - test::uniform(random, 1, 12)); t < tokens; ++t)
      rows.push_back({pool.blocks.data(), t});
    const std::vector<float> queries = test::random_floats(random, static_cast<std::int64_t>(rows.size()) * heads * head_dim, 2.0F);
    ASSERT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads),
                                attend(test::scalar_tier(), pool.layer, rows, queries, heads)))
        << "block_tokens " << block_tokens << " head_dim " << head_dim << " heads " << heads << "/" << kv_heads << " tokens "
        << tokens;
  }
}

// One result for a token, whether it was the last one stored, whether other rows of its sequence or of others are computed with it,
// and whatever range of heads a thread takes.
TEST_P(Attention, ARowDependsOnItsOwnPastOnly) {
  Random random(4);
  const std::int32_t heads = 6;
  const std::int32_t head_dim = 32;
  const std::int32_t tokens = 300;
  const std::int64_t width = heads * head_dim;
  Pool pool(random, KvType::kF16, 16, head_dim, 3, tokens);
  Pool other(random, KvType::kF16, 16, head_dim, 3, tokens);
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
  EXPECT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads), alone));
  other.layer = pool.layer;
  std::vector<std::int32_t> same_blocks = pool.blocks;  // a second sequence with the same past
  for (std::size_t r = 1; r < rows.size(); r += 2) rows[r].blocks = same_blocks.data();
  EXPECT_TRUE(test::same_bits(attend(*GetParam(), pool.layer, rows, queries, heads), alone));
}

TEST_P(Attention, AnInfinityInALaterTokenDoesNotReachEarlierRows) {
  Random random(5);
  Pool pool(random, KvType::kF16, 16, 16, 1, 40);
  pool.store(*GetParam(), 0, 40);
  std::vector<AttentionRow> rows;
  for (std::int32_t t = 30; t < 40; ++t) rows.push_back({pool.blocks.data(), t});
  const std::vector<float> queries = test::random_floats(random, 10 * 16);
  const std::vector<float> before = attend(*GetParam(), pool.layer, rows, queries, 1);
  std::fill_n(pool.values.begin() + 39 * 16, 16, 1e30F);
  pool.store(*GetParam(), 39, 40);
  const std::vector<float> after = attend(*GetParam(), pool.layer, rows, queries, 1);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 9 * 16, after.begin()));
  EXPECT_TRUE(std::isinf(after[9 * 16]));
}

}  // namespace
}  // namespace braid::kernels
