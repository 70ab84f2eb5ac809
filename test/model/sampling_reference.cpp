#include "model/sampling_reference.h"

#include "model/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace braid::model::test {
namespace {

// The length of the longest common end of the tokens and of the tokens before `end`.
std::size_t repeated_before(const std::vector<TokenId>& tokens, std::size_t end) {
  std::size_t length = 0;
  while (length < end && tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) ++length;
  return length;
}

std::size_t since_breaker(const std::vector<TokenId>& tokens, const SamplingParams& params) {
  for (std::size_t begin = tokens.size(); begin-- > 0;) {
    std::size_t longest = 0;
    for (const auto& breaker : params.dry_sequence_breakers) {
      if (begin + breaker.size() > tokens.size()) continue;
      if (std::equal(breaker.begin(), breaker.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin)))
        longest = std::max(longest, breaker.size());
    }
    if (longest > 0) return tokens.size() - begin - longest;
  }
  return tokens.size();
}

void penalise_repetitions(std::vector<double>& logits, const SamplingParams& params, std::vector<TokenId> tokens) {
  if (params.dry_multiplier == 0.0F) return;
  if (params.dry_penalty_last_n >= 0 && tokens.size() > static_cast<std::size_t>(params.dry_penalty_last_n))
    tokens.erase(tokens.begin(), tokens.end() - params.dry_penalty_last_n);
  const std::size_t limit = since_breaker(tokens, params);
  const auto allowed = static_cast<std::size_t>(params.dry_allowed_length);
  std::map<TokenId, std::size_t> longest;
  for (std::size_t end = 1; end < tokens.size(); ++end) {
    const std::size_t length = std::min(repeated_before(tokens, end), limit);
    if (length >= allowed) longest[tokens[end]] = std::max(longest[tokens[end]], length);
  }
  for (const auto& [token, length] : longest) {
    const bool breaker = std::ranges::count(params.dry_sequence_breakers, std::vector<TokenId>{token}) > 0;
    if (breaker) continue;
    logits[static_cast<std::size_t>(token)] -=
        static_cast<double>(params.dry_multiplier) * std::pow(static_cast<double>(params.dry_base), static_cast<double>(length - allowed));
  }
}

// The candidates that are left, best first, and their weights.
struct Candidates {
  std::vector<std::size_t> order;
  std::vector<double> weight;

  double mass() const {
    double total = 0.0;
    for (const std::size_t id : order) total += weight[id];
    return total;
  }
  // The shortest run at the front that holds `share` of the mass.
  void keep_run(double share) {
    const double wanted = share * mass();
    double kept = 0.0;
    std::size_t count = 0;
    while (count < order.size() && kept < wanted) kept += weight[order[count++]];
    order.resize(std::max<std::size_t>(1, count));
  }
  void sort_best_first() {
    std::ranges::sort(order);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
  }
};

Candidates weigh(std::vector<double> logits, const SamplingParams& params) {
  const double best = *std::ranges::max_element(logits);
  if (params.top_n_sigma > 0.0F) {
    double sum = 0.0, squares = 0.0, count = 0.0;
    for (const double x : logits)
      if (x > -kInfinity) sum += x, count += 1.0;
    for (const double x : logits)
      if (x > -kInfinity) squares += (x - sum / count) * (x - sum / count);
    for (double& x : logits)
      if (x < best - static_cast<double>(params.top_n_sigma) * std::sqrt(squares / count)) x = -kInfinity;
  }
  Candidates candidates;
  for (const double x : logits) candidates.weight.push_back(std::exp((x - best) / static_cast<double>(params.temperature)));
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (candidates.weight[id] > 0.0) candidates.order.push_back(id);
  candidates.sort_best_first();
  return candidates;
}

void keep_typical(Candidates& candidates, double share) {
  const double mass = candidates.mass();
  const auto surprise = [&](std::size_t id) { return -std::log(candidates.weight[id] / mass); };
  double entropy = 0.0;
  for (const std::size_t id : candidates.order) entropy += candidates.weight[id] / mass * surprise(id);
  std::ranges::sort(candidates.order);
  std::ranges::stable_sort(candidates.order, [&](std::size_t a, std::size_t b) {
    return std::abs(surprise(a) - entropy) < std::abs(surprise(b) - entropy) - 1e-12;
  });
  candidates.keep_run(share);
  candidates.sort_best_first();
}

std::vector<double> probabilities(const Candidates& candidates) {
  std::vector<double> result(candidates.weight.size(), 0.0);
  const double mass = candidates.mass();
  for (const std::size_t id : candidates.order) result[id] = candidates.weight[id] / mass;
  return result;
}

}  // namespace

std::vector<double> adjusted_logits(const std::vector<float>& logits, const SamplingParams& params, const Known& known,
                                    const std::vector<TokenId>& banned) {
  std::vector<double> out(logits.begin(), logits.end());
  for (const LogitBias& bias : params.logit_bias) out[static_cast<std::size_t>(bias.token)] += static_cast<double>(bias.bias);
  const auto total = known.tokens.size();
  for (std::size_t id = 0; id < out.size(); ++id) {
    bool in_window = false;
    int in_answer = 0;
    for (std::size_t i = 0; i < total; ++i) {
      if (known.tokens[i] != static_cast<TokenId>(id)) continue;
      in_window |= params.penalty_last_n < 0 || i + static_cast<std::size_t>(params.penalty_last_n) >= total;
      in_answer += i + known.generated >= total ? 1 : 0;
    }
    const auto repetition = static_cast<double>(params.repetition_penalty);
    if (in_window) out[id] = out[id] > 0.0 ? out[id] / repetition : out[id] * repetition;
    if (in_answer > 0) out[id] -= in_answer * static_cast<double>(params.frequency_penalty) + static_cast<double>(params.presence_penalty);
  }
  penalise_repetitions(out, params, known.tokens);
  for (const TokenId id : banned) out[static_cast<std::size_t>(id)] = -kInfinity;
  return out;
}

std::vector<double> defined_distribution(const std::vector<double>& adjusted, const SamplingParams& params) {
  Candidates candidates = weigh(adjusted, params);
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < candidates.order.size())
    candidates.order.resize(static_cast<std::size_t>(params.top_k));
  if (params.typical_p < 1.0F) keep_typical(candidates, static_cast<double>(params.typical_p));
  if (params.top_p < 1.0F) candidates.keep_run(static_cast<double>(params.top_p));
  const double least = static_cast<double>(params.min_p) * candidates.weight[candidates.order[0]];
  std::erase_if(candidates.order, [&](std::size_t id) { return candidates.weight[id] < least; });
  const std::vector<double> all = probabilities(candidates);
  if (params.xtc_probability == 0.0F || params.xtc_threshold > 0.5F) return all;

  std::size_t top = 0;
  while (top < candidates.order.size() && all[candidates.order[top]] >= static_cast<double>(params.xtc_threshold)) ++top;
  if (top > 1) candidates.order.erase(candidates.order.begin(), candidates.order.begin() + static_cast<std::ptrdiff_t>(top - 1));
  std::vector<double> mixed = probabilities(candidates);
  const auto share = static_cast<double>(params.xtc_probability);
  for (std::size_t id = 0; id < mixed.size(); ++id) mixed[id] = share * mixed[id] + (1.0 - share) * all[id];
  return mixed;
}

std::vector<double> mirostat_distribution(const std::vector<double>& adjusted, const SamplingParams& params, double mu) {
  Candidates candidates = weigh(adjusted, params);
  const double mass = candidates.mass();
  if (params.mirostat == 2) {
    std::erase_if(candidates.order,
                  [&, best = candidates.order[0]](std::size_t id) { return id != best && -std::log2(candidates.weight[id] / mass) > mu; });
    return probabilities(candidates);
  }
  double products = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < 99 && i + 1 < candidates.order.size(); ++i) {
    const double step = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += step * std::log(candidates.weight[candidates.order[i]] / candidates.weight[candidates.order[i + 1]]);
    squares += step * step;
  }
  const double slope = products / squares;
  const double epsilon = slope - 1.0;
  const auto vocab = static_cast<double>(adjusted.size());
  const double k = std::pow(epsilon * std::exp2(mu) / (1.0 - std::pow(vocab, -epsilon)), 1.0 / slope);
  candidates.order.resize(static_cast<std::size_t>(std::clamp(k, 1.0, static_cast<double>(candidates.order.size()))));
  return probabilities(candidates);
}

}  // namespace braid::model::test
