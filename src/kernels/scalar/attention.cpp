// Attention of one query vector at a time, over chunks of kChunkTokens positions aligned to position 0:
//   score[t] = chain over d of fma(query[d] * scale, key[d][t])
//   top'     = max(top, max score); weight[t] = exp(score[t] - top'); decay = exp(top - top'), 0 in the first chunk
//   total    = fma(total, decay, sum of weights by the lane tree)
//   acc[d]   = acc[d] * decay, then a chain over t of fma(weight[t], value[t][d])
// and at the end out[d] = acc[d] * (1 / total). A row's result depends on its position and its data only.
#include <kernels/half.h>
#include <kernels/scalar/lanes.h>
#include <kernels/scalar/tier.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::kernels::scalar {
namespace {

float load(KvType type, const std::byte* base, std::int64_t i) {
  if (type == KvType::kF32) {
    float value;
    std::memcpy(&value, base + i * 4, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, base + i * 2, sizeof(bits));
  return f16_to_float(bits);
}

void store(KvType type, std::byte* base, std::int64_t i, float value) {
  if (type == KvType::kF32) {
    std::memcpy(base + i * 4, &value, sizeof(value));
  } else {
    const std::uint16_t bits = float_to_f16(value);
    std::memcpy(base + i * 2, &bits, sizeof(bits));
  }
}

std::byte* head_bytes(const KvLayer& kv, std::int32_t block, std::int32_t head) {
  return kv.base + static_cast<std::size_t>(block) * kv.block_stride + static_cast<std::size_t>(head) * kv.head_stride;
}

float score(const KvLayer& kv, const std::byte* keys, std::int32_t slot, const float* query) {
  float sum = 0.0F;
  for (std::int32_t d = 0; d < kv.head_dim; ++d) {
    sum = std::fma(query[d], load(kv.type, keys, std::int64_t{d} * kv.block_tokens + slot), sum);
  }
  return sum;
}

// The state of one query's online softmax.
struct Running {
  float top = 0.0F;
  float total = 0.0F;
};

// Adds positions [begin, end), one chunk, to acc [head_dim].
void add_chunk(const KvLayer& kv, const std::int32_t* blocks, std::int32_t head, std::int32_t begin, std::int32_t end,
               const float* query, Running& running, float* acc) {
  float weights[kChunkTokens];
  float top = begin == 0 ? -HUGE_VALF : running.top;
  for (std::int32_t t = begin; t < end; ++t) {
    const std::byte* keys = head_bytes(kv, blocks[t / kv.block_tokens], head);
    weights[t - begin] = score(kv, keys, t % kv.block_tokens, query);
    top = std::max(top, weights[t - begin]);
  }
  Lanes sums;
  for (std::int32_t i = 0; i < end - begin; ++i) {
    weights[i] = exp(weights[i] - top);
    sums.sum[i % kLanes] += weights[i];
  }
  const float decay = begin == 0 ? 0.0F : exp(running.top - top);
  running.total = std::fma(running.total, decay, sums.tree());
  running.top = top;
  for (std::int32_t d = 0; d < kv.head_dim; ++d) acc[d] *= decay;
  for (std::int32_t t = begin; t < end; ++t) {
    const std::byte* values = head_bytes(kv, blocks[t / kv.block_tokens], head) + kv.value_offset;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
      const float value = load(kv.type, values, std::int64_t{t % kv.block_tokens} * kv.head_dim + d);
      acc[d] = std::fma(weights[t - begin], value, acc[d]);
    }
  }
}

}  // namespace

void kv_store(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept {
  for (std::int32_t h = 0; h < kv.kv_heads; ++h, keys += kv.head_dim, values += kv.head_dim) {
    std::byte* head = head_bytes(kv, block, h);
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
      store(kv.type, head, std::int64_t{d} * kv.block_tokens + slot, keys[d]);
      store(kv.type, head + kv.value_offset, std::int64_t{slot} * kv.head_dim + d, values[d]);
    }
  }
}

std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim) noexcept {
  return static_cast<std::size_t>(head_dim) * sizeof(float);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  const KvLayer& kv = *args.kv;
  const std::int32_t group = args.heads / kv.kv_heads;
  auto* query = reinterpret_cast<float*>(args.scratch);
  for (std::int64_t r = row_begin; r < row_end; ++r) {
    const std::int32_t tokens = args.rows[r].position + 1;
    for (std::int32_t h = kv_head_begin * group; h < kv_head_end * group; ++h) {
      const std::int64_t offset = std::int64_t{h} * kv.head_dim;
      for (std::int32_t d = 0; d < kv.head_dim; ++d) query[d] = args.queries[r * args.query_stride + offset + d] * args.scale;
      float* out = args.out + r * args.out_stride + offset;
      std::fill_n(out, kv.head_dim, 0.0F);
      Running running;
      for (std::int32_t begin = 0; begin < tokens; begin += kChunkTokens) {
        add_chunk(kv, args.rows[r].blocks, h / group, begin, std::min(tokens, begin + kChunkTokens), query, running, out);
      }
      const float inverse = 1.0F / running.total;
      for (std::int32_t d = 0; d < kv.head_dim; ++d) out[d] *= inverse;
    }
  }
}

}  // namespace braid::kernels::scalar
