// Attention of a text's tokens to all others, before and behind them.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/encoders/encoder_shape.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Rows [begin, begin + count) of a batch.
struct TextRows {
  std::int64_t begin = 0;
  std::int32_t count = 0;
};

// Keys and values of the layer at hand, in float32 blocks of which every text has its own, so that the tiers' own kernels read them. A row
// that sees all its text is to them one at the text's last position.
class EncoderAttention {
 public:
  // All outlive it. `distance_bias`: [buckets, heads], or empty.
  EncoderAttention(const EncoderShape& shape, float scale, std::span<const float> distance_bias, const kernels::KernelTable& table,
                   kernels::ThreadTeam& team, std::span<const TextRows> texts);

  // One token's, [kv_heads, head_dim] each. Any member of the team.
  void store(std::size_t text, std::int32_t place, const float* keys, const float* values);

  // out[row] = attention of queries[row], for rows [begin, end) of one text, counted from its first; both [rows, heads * head_dim] of the
  // batch.
  void attend(const EncoderLayer& layer, std::size_t text, std::int32_t begin, std::int32_t end, const float* queries, float* out);

 private:
  static constexpr std::int32_t kBlock = 64;

  void attend_by_tier(const EncoderLayer& layer, std::size_t text, std::int32_t begin, std::int32_t end, const float* queries, float* out);
  void attend_by_distance(std::size_t text, std::int32_t row, const float* query, float* out, std::vector<float>& scores) const;
  float distance_score(std::int32_t head, std::int32_t distance) const;

  const EncoderShape& shape_;
  const float scale_;
  std::span<const float> distance_bias_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  std::span<const TextRows> texts_;
  std::vector<std::int32_t> first_block_;  // by text
  std::vector<std::int32_t> blocks_;       // 0, 1, 2, ...
  std::vector<std::byte> bytes_;
  kernels::KvLayer kv_;
  std::vector<std::byte> scratch_;  // of each member
  std::size_t scratch_bytes_ = 0;
  std::vector<kernels::AttentionRow> rows_;
  std::vector<std::int32_t> buckets_;  // by distance, up to the longest text's: behind, then before
  std::vector<double> slopes_;         // of each head
};

}  // namespace braid::model
