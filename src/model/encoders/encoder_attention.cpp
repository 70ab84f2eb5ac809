#include "model/encoders/encoder_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace braid::model {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::int64_t kRowsAtOnce = 8;

std::byte* aligned(std::vector<std::byte>& bytes) {
  void* at = bytes.data();
  std::size_t room = bytes.size();
  std::align(kLineBytes, room - kLineBytes, at, room);
  return static_cast<std::byte*>(at);
}

// T5's, in both directions: near distances one by one, farther ones by their logarithm.
std::int32_t distance_bucket(std::int32_t distance, std::int32_t buckets) {
  constexpr double kFarthest = 128.0;
  const std::int32_t half = buckets / 2;
  const std::int32_t base = distance > 0 ? half : 0;
  const std::int32_t far = std::abs(distance);
  const std::int32_t exact = half / 2;
  if (far < exact) return base + far;
  const auto place = static_cast<float>(std::log(static_cast<float>(far) / static_cast<float>(exact))) /
                     static_cast<float>(std::log(kFarthest / exact)) * static_cast<float>(half - exact);
  return base + std::min(exact + static_cast<std::int32_t>(place), half - 1);
}

// Press et al. 2022; for numbers of heads that are no power of two as in their code.
double slope_of(std::int32_t head, std::int32_t heads) {
  std::int32_t power = 1;
  while (power * 2 <= heads) power *= 2;
  return head < power ? std::exp2(-8.0 * (head + 1) / power) : std::exp2(-4.0 * (2 * (head - power) + 1) / power);
}

}  // namespace

EncoderAttention::EncoderAttention(const EncoderShape& shape, float scale, std::span<const float> distance_bias,
                                   const kernels::KernelTable& table, kernels::ThreadTeam& team, std::span<const TextRows> texts)
    : shape_(shape), scale_(scale), distance_bias_(distance_bias), table_(table), team_(team), texts_(texts) {
  std::int32_t blocks = 0;
  std::int32_t longest = 0;
  for (const TextRows& text : texts) {
    first_block_.push_back(blocks);
    blocks += (text.count + kBlock - 1) / kBlock;
    longest = std::max(longest, text.count);
  }
  for (std::int32_t i = 0; i < blocks; ++i) blocks_.push_back(i);
  const std::size_t half = static_cast<std::size_t>(shape.head_dim) * kBlock * sizeof(float);
  const std::size_t head = 2 * half;
  const std::size_t block = head * static_cast<std::size_t>(shape.kv_heads);
  bytes_.resize(block * static_cast<std::size_t>(blocks) + kLineBytes);
  kv_ = {.base = aligned(bytes_),
         .block_stride = block,
         .head_stride = head,
         .value_offset = half,
         .scale_offset = 0,
         .block_tokens = kBlock,
         .head_dim = shape.head_dim,
         .kv_heads = shape.kv_heads,
         .type = kernels::KvType::kF32};
  scratch_bytes_ = (table.attention_scratch_bytes(shape.heads, shape.head_dim, kv_.latent) + kLineBytes - 1) / kLineBytes * kLineBytes;
  scratch_.resize(scratch_bytes_ * static_cast<std::size_t>(team.size()) + kLineBytes);
  if (!distance_bias.empty())
    for (std::int32_t distance = -longest; distance <= longest; ++distance)
      buckets_.push_back(distance_bucket(distance, static_cast<std::int32_t>(shape.distance_buckets)));
  for (std::int32_t i = 0; shape.slopes && i < shape.heads; ++i) slopes_.push_back(slope_of(i, shape.heads));
}

void EncoderAttention::store(std::size_t text, std::int32_t place, const float* keys, const float* values) {
  table_.kv_store(kv_, first_block_[text] + place / kBlock, place % kBlock, keys, values);
}

void EncoderAttention::attend(const EncoderLayer& layer, std::size_t text, std::int32_t begin, std::int32_t end, const float* queries,
                              float* out) {
  if (distance_bias_.empty() && !shape_.slopes) return attend_by_tier(layer, text, begin, end, queries, out);
  const std::int64_t width = std::int64_t{shape_.heads} * shape_.head_dim;
  const std::int64_t first = texts_[text].begin;
  team_.for_chunks(end - begin, 1, [&](std::int64_t from, std::int64_t to, int) {
    std::vector<float> scores;
    for (std::int64_t row = begin + from; row < begin + to; ++row)
      attend_by_distance(text, static_cast<std::int32_t>(row), queries + (first + row) * width, out + (first + row) * width, scores);
  });
}

// A row near the end sees fewer positions behind it, so that its window, which the kernels count from its end, is shorter.
void EncoderAttention::attend_by_tier(const EncoderLayer& layer, std::size_t text, std::int32_t begin, std::int32_t end,
                                      const float* queries, float* out) {
  const std::int32_t count = texts_[text].count;
  const std::int64_t width = std::int64_t{shape_.heads} * shape_.head_dim;
  const std::int32_t reach = layer.window > 0 && layer.window < count ? layer.window : 0;
  rows_.clear();
  for (std::int32_t row = begin; row < end; ++row)
    rows_.push_back({blocks_.data() + first_block_[text], reach > 0 ? std::min(row + reach, count - 1) : count - 1});
  std::byte* const scratch = aligned(scratch_);
  const float* const first_query = queries + (texts_[text].begin + begin) * width;
  float* const first_out = out + (texts_[text].begin + begin) * width;
  const auto run = [&](std::int32_t from, std::int32_t to, std::int32_t window, int member) {
    const kernels::AttentionArgs args{.kv = &kv_,
                                      .rows = rows_.data(),
                                      .queries = first_query,
                                      .out = first_out,
                                      .query_stride = width,
                                      .out_stride = width,
                                      .heads = shape_.heads,
                                      .window = window,
                                      .scale = scale_,
                                      .scratch = scratch + scratch_bytes_ * static_cast<std::size_t>(member)};
    table_.attention(args, from, to, 0, shape_.kv_heads);
  };
  team_.for_chunks(end - begin, kRowsAtOnce, [&](std::int64_t from, std::int64_t to, int member) {
    auto row = static_cast<std::int32_t>(from);
    const auto last = static_cast<std::int32_t>(to);
    const std::int32_t plain = reach > 0 ? std::clamp(count - reach - begin, row, last) : last;
    if (plain > row) run(row, plain, reach > 0 ? 2 * reach + 1 : 0, member);
    for (row = plain; row < last; ++row)
      run(row, row + 1, rows_[static_cast<std::size_t>(row)].position - (begin + row) + reach + 1, member);
  });
}

float EncoderAttention::distance_score(std::int32_t head, std::int32_t distance) const {
  if (shape_.slopes) return static_cast<float>(-slopes_[static_cast<std::size_t>(head)] * std::abs(distance));
  const auto middle = static_cast<std::int32_t>(buckets_.size() / 2);
  return distance_bias_[static_cast<std::size_t>(buckets_[static_cast<std::size_t>(middle + distance)] * shape_.heads + head)];
}

// No tier has a kernel for scores that depend on both directions' distances.
void EncoderAttention::attend_by_distance(std::size_t text, std::int32_t row, const float* query, float* out,
                                          std::vector<float>& scores) const {
  const std::int32_t count = texts_[text].count;
  const std::int32_t dims = shape_.head_dim;
  const std::int32_t shared = shape_.heads / shape_.kv_heads;
  scores.resize(static_cast<std::size_t>((count + kBlock - 1) / kBlock * kBlock));
  for (std::int32_t head = 0; head < shape_.heads; ++head) {
    const float* const q = query + head * dims;
    const auto keys_of = [&](std::int32_t block) {
      return reinterpret_cast<const float*>(kv_.base + static_cast<std::size_t>(first_block_[text] + block) * kv_.block_stride +
                                            static_cast<std::size_t>(head / shared) * kv_.head_stride);
    };
    for (std::int32_t t = 0; t < count; t += kBlock) {
      const float* const keys = keys_of(t / kBlock);
      float* const to = scores.data() + t;
      std::fill_n(to, kBlock, 0.0F);
      for (std::int32_t d = 0; d < dims; ++d)
        for (std::int32_t i = 0; i < kBlock; ++i) to[i] += q[d] * keys[d * kBlock + i];
    }
    float top = -INFINITY;
    for (std::int32_t t = 0; t < count; ++t) {
      float& score = scores[static_cast<std::size_t>(t)];
      score = score * scale_ + distance_score(head, t - row);
      top = std::max(top, score);
    }
    const float sum = table_.exp_sum(scores.data(), count, 1.0F, top, scores.data());
    float* const to = out + head * dims;
    std::fill_n(to, dims, 0.0F);
    for (std::int32_t t = 0; t < count; ++t) {
      const float* const values = keys_of(t / kBlock) + dims * kBlock + t % kBlock * dims;
      for (std::int32_t d = 0; d < dims; ++d) to[d] += scores[static_cast<std::size_t>(t)] * values[d];
    }
    for (std::int32_t d = 0; d < dims; ++d) to[d] /= sum;
  }
}

}  // namespace braid::model
