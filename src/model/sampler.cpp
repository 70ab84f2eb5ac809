#include <model/sampler.h>

#include <model/deterministic_math.h>
#include <model/philox.h>

#include <algorithm>
#include <array>
#include <limits>

namespace braid::model {
namespace {

constexpr std::size_t kBlock = 64;           // values looked at together when scanning for large ones
constexpr std::size_t kSumBlock = 256;
constexpr std::size_t kSortAtMost = 32;      // candidates that are sorted rather than partitioned
constexpr float kLowestTemperature = 1e-6F;  // keeps 1 / temperature finite

// Calls take(index) for every value above `threshold`, in order; `take` may raise the threshold. Most blocks have none, which a
// vectorised test finds.
template <class Take>
void scan_above(std::span<const float> values, const float& threshold, Take&& take) {
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t end = std::min(values.size(), begin + kBlock);
    int any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<int>(values[i] > threshold);
    if (any == 0) continue;
    for (std::size_t i = begin; i < end; ++i)
      if (values[i] > threshold) take(i);
  }
}

double block_sum(std::span<const float> values) {
  std::array<double, 4> sums{};
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % 4] += static_cast<double>(values[i]);
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace

Sampler::Sampler(const kernels::KernelTable& table, std::int32_t vocab)
    : table_(table),
      weights_(static_cast<std::size_t>(vocab)),
      block_sums_((static_cast<std::size_t>(vocab) + kSumBlock - 1) / kSumBlock) {
  candidates_.reserve(static_cast<std::size_t>(vocab) + kBlock);
}

SampledToken Sampler::sample(std::span<const float> logits, const SamplingParams& params, std::int64_t position,
                             std::span<const TokenId> banned, std::span<TokenLogprob> top) {
  SampledToken out;
  out.token = pick(logits, params, uniform_draw(params.seed, params.choice, position), banned);
  if (params.top_logprobs >= 0) report(logits, top, out);
  return out;
}

// Log-probabilities of the model's own distribution.
void Sampler::report(std::span<const float> logits, std::span<TokenLogprob> top, SampledToken& out) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const float best = logits[static_cast<std::size_t>(table_.argmax(logits.data(), count))];
  const float sum = table_.exp_sum(logits.data(), count, 1.0F, best, weights_.data());
  const double log_total = static_cast<double>(best) + fixed_log(static_cast<double>(sum));
  const auto logprob = [&](TokenId id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_total);
  };
  out.logprob = logprob(out.token);
  if (top.empty()) return;

  // Insertion into a short sorted list; ids come in order, so equal values keep the lowest first.
  std::size_t filled = 0;
  float threshold = -std::numeric_limits<float>::infinity();
  scan_above(logits, threshold, [&](std::size_t i) {
    std::size_t slot = filled < top.size() ? filled++ : top.size() - 1;
    for (; slot > 0 && logits[static_cast<std::size_t>(top[slot - 1].id)] < logits[i]; --slot) top[slot] = top[slot - 1];
    top[slot].id = static_cast<TokenId>(i);
    if (filled == top.size()) threshold = logits[static_cast<std::size_t>(top.back().id)];
  });
  for (TokenLogprob& entry : top.first(filled)) entry.logprob = logprob(entry.id);
  out.top_count = static_cast<std::uint32_t>(filled);
}

TokenId Sampler::pick(std::span<const float> logits, const SamplingParams& params, double uniform,
                      std::span<const TokenId> banned) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const bool greedy = params.temperature <= 0.0F;
  if (greedy && banned.empty()) return static_cast<TokenId>(table_.argmax(logits.data(), count));

  std::ranges::copy(logits, weights_.begin());
  for (const TokenId id : banned) weights_[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
  const auto best = static_cast<TokenId>(table_.argmax(weights_.data(), count));
  if (greedy) return best;

  // The best is subtracted before scaling: scaling first would lose all precision at low temperatures.
  const float highest = weights_[static_cast<std::size_t>(best)];
  for (float& weight : weights_) weight -= highest;
  const float scale = 1.0F / std::max(params.temperature, kLowestTemperature);
  const float total = table_.exp_sum(weights_.data(), count, scale, 0.0F, weights_.data());

  const bool top_k = params.top_k > 0 && params.top_k < count;
  const bool top_p = params.top_p < 1.0F;
  if (!top_k && !top_p && params.min_p <= 0.0F) return draw_from_all(uniform, best);
  if (top_k) {
    keep_top_k(static_cast<std::size_t>(params.top_k));
  } else {
    // All tokens below (1 - top_p) / count of the mass have less than 1 - top_p of it together: top-p never needs them.
    const float tail = top_p ? (1.0F - params.top_p) * total / static_cast<float>(count) * 0.999F : 0.0F;
    keep_above(std::max(tail, params.min_p * 0.999F));
  }
  if (top_p) {
    double mass = static_cast<double>(total);
    if (top_k) {
      mass = 0.0;
      for (const Candidate& candidate : candidates_) mass += static_cast<double>(candidate.weight);
    }
    keep_top_p(static_cast<double>(params.top_p) * mass);
  }
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < params.min_p; });
  return draw_from_candidates(uniform, best);
}

void Sampler::keep_top_k(std::size_t k) {
  candidates_.clear();
  float threshold = 0.0F;  // a weight of 0 cannot be drawn
  const auto shrink = [&] {
    if (candidates_.size() <= k) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1), candidates_.end(), better);
    candidates_.resize(k);
    threshold = candidates_.back().weight;
  };
  scan_above(weights_, threshold, [&](std::size_t i) {
    candidates_.push_back({weights_[i], static_cast<TokenId>(i)});
    if (candidates_.size() >= 2 * k + 1024) shrink();
  });
  shrink();
}

void Sampler::keep_above(float threshold) {
  candidates_.clear();
  scan_above(weights_, threshold, [&](std::size_t i) { candidates_.push_back({weights_[i], static_cast<TokenId>(i)}); });
}

// Keeps the shortest run of best candidates that holds `mass`: quickselect by weight, as nth_element is by count.
void Sampler::keep_top_p(double mass) {
  std::size_t begin = 0;
  std::size_t end = candidates_.size();
  double kept = 0.0;  // the mass of [0, begin), all better than [begin, end)
  while (end - begin > kSortAtMost) {
    std::array probes{candidates_[begin], candidates_[begin + (end - begin) / 2], candidates_[end - 1]};
    std::ranges::sort(probes, better);
    const Candidate pivot = probes[1];
    const auto first = candidates_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto split = std::partition(first, candidates_.begin() + static_cast<std::ptrdiff_t>(end),
                                      [&](const Candidate& candidate) { return better(candidate, pivot); });
    double upper = 0.0;
    for (auto candidate = first; candidate != split; ++candidate) upper += static_cast<double>(candidate->weight);
    const auto middle = static_cast<std::size_t>(split - candidates_.begin());
    if (kept + upper >= mass) {
      end = middle;
    } else {
      kept += upper;
      begin = middle;
    }
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.begin() + static_cast<std::ptrdiff_t>(end), better);
  while (begin < end && kept < mass) kept += static_cast<double>(candidates_[begin++].weight);
  candidates_.resize(std::max<std::size_t>(begin, std::min<std::size_t>(1, candidates_.size())));
}

TokenId Sampler::draw_from_candidates(double uniform, TokenId fallback) const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.weight);
  const double target = uniform * total;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += static_cast<double>(candidate.weight);
    if (sum > target) return candidate.id;
  }
  return fallback;
}

TokenId Sampler::draw_from_all(double uniform, TokenId fallback) {
  const std::span<const float> weights = weights_;
  const auto block = [&](std::size_t b) {
    return weights.subspan(b * kSumBlock, std::min(kSumBlock, weights.size() - b * kSumBlock));
  };
  double total = 0.0;
  for (std::size_t b = 0; b < block_sums_.size(); ++b) total += block_sums_[b] = block_sum(block(b));
  const double target = uniform * total;
  std::size_t b = 0;
  double sum = 0.0;
  while (b + 1 < block_sums_.size() && sum + block_sums_[b] <= target) sum += block_sums_[b++];
  const std::span<const float> chosen = block(b);
  TokenId last = fallback;  // what rounding leaves over at the block's end goes to its last possible token
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!(chosen[i] > 0.0F)) continue;
    last = static_cast<TokenId>(b * kSumBlock + i);
    sum += static_cast<double>(chosen[i]);
    if (sum > target) break;
  }
  return last;
}

}  // namespace braid::model
