#include "model/sampling/sampler.h"

#include "model/deterministic_math.h"
#include "model/sampling/mirostat.h"
#include "model/sampling/penalties.h"
#include "model/sampling/philox.h"
#include "model/sampling/scan_above.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace braid::model {
namespace {

constexpr float kLowestTemperature = 1e-6F;     // keeps 1 / temperature finite
constexpr float kLargestShift = 0x1p20F;        // beyond it a shift has lost the digits that tell weights apart
constexpr float kLargestXtcThreshold = 0.5F;    // above it there is one top choice at most
constexpr std::uint32_t kXtcDraw = 0xFFFFFFFF;  // the draw that decides whether XTC applies

double uniform(const SamplingState& state, std::uint32_t draw = 0) {
  return uniform_draw(state.params.seed, state.params.choice, state.position, draw);
}

std::size_t index(TokenId token) { return static_cast<std::size_t>(token); }

// Otherwise it has a place among the steps.
bool cuts_sigma_first(const SamplingParams& params) { return params.top_n_sigma > 0.0F && params.steps.empty(); }

bool adjusts(const SamplingState& state) {
  return !state.params.logit_bias.empty() || state.history != nullptr || state.constraint != nullptr || !state.banned.empty() ||
         cuts_sigma_first(state.params);
}

// How likely what has this weight was among all that have `mass` together, where that is asked for.
float log_share(const SamplingParams& params, double weight, double mass) {
  return params.drawn_logprob ? static_cast<float>(fixed_log(weight / mass)) : 0.0F;
}

bool xtc_applies(const SamplingState& state) {
  const SamplingParams& params = state.params;
  return params.xtc_probability > 0.0F && params.xtc_threshold <= kLargestXtcThreshold &&
         uniform(state, kXtcDraw) < static_cast<double>(params.xtc_probability);
}

}  // namespace

Sampler::Sampler(const kernels::KernelTable& table, std::int32_t vocab, std::int32_t context)
    : table_(table), scores_(static_cast<std::size_t>(vocab)), weights_(static_cast<std::size_t>(vocab)),
      allowed_((static_cast<std::size_t>(vocab) + 31) / 32), candidates_(static_cast<std::size_t>(vocab)), masses_(table, vocab),
      dry_(context) {}

std::optional<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingState& state) {
  const SamplingParams& params = state.params;
  const std::span<const float> scores = adjusts(state) ? adjust(logits, state) : logits;
  const auto best = static_cast<TokenId>(table_.argmax(scores.data(), static_cast<std::int64_t>(scores.size())));
  const float highest = scores[index(best)];
  if (!(highest > -kInfinity)) return std::nullopt;
  if (params.temperature <= 0.0F || highest == kInfinity) return SampledToken{best, state.mirostat_mu};

  if (!params.steps.empty() && params.mirostat == 0) return draw_in_order(scores, highest, state, best);
  const LogWeights log_weights = weigh(scores, highest, params.temperature);
  if (params.mirostat == 1) return draw_mirostat_1(state, best);
  if (params.mirostat == 2) return draw_mirostat_2(state, best);
  const bool cut_by_rank = params.top_k > 0 && index(params.top_k) < scores.size();
  const bool xtc = xtc_applies(state);
  if (!cut_by_rank && params.typical_p >= 1.0F && !xtc) return draw_from_all(state, best);

  if (cut_by_rank) {
    candidates_.take_best(weights_, index(params.top_k));
  } else {
    candidates_.take_all(weights_);
  }
  if (params.typical_p < 1.0F) candidates_.keep_typical(static_cast<double>(params.typical_p), log_weights);
  if (params.top_p < 1.0F) candidates_.keep_top_p(static_cast<double>(params.top_p));
  if (params.min_p > 0.0F) candidates_.keep_min_p(params.min_p);
  if (xtc) candidates_.exclude_top_choices(static_cast<double>(params.xtc_threshold));
  return draw_from_list(state, best);
}

SampledToken Sampler::draw_from_list(const SamplingState& state, TokenId best) {
  const auto drawn = candidates_.draw(uniform(state));
  if (!drawn) return {best, state.mirostat_mu};
  if (!state.params.drawn_logprob) return {drawn->id, state.mirostat_mu};
  return {drawn->id, state.mirostat_mu, log_share(state.params, static_cast<double>(drawn->weight), candidates_.mass())};
}

std::span<const float> Sampler::adjust(std::span<const float> logits, const SamplingState& state) {
  const SamplingParams& params = state.params;
  std::ranges::copy(logits, scores_.begin());
  add_bias(params.logit_bias, scores_);
  if (state.history != nullptr) {
    apply_penalties(params, state.history->counts(), scores_);
    dry_.apply(params, state.history->tokens(), scores_);
  }
  if (state.constraint != nullptr) restrict_to(*state.constraint);
  if (!state.banned.empty()) ban(state);
  if (cuts_sigma_first(params)) {
    const float largest = scores_[index(static_cast<TokenId>(table_.argmax(scores_.data(), static_cast<std::int64_t>(scores_.size()))))];
    keep_top_n_sigma(params.top_n_sigma, largest, scores_);
  }
  return scores_;
}

void Sampler::restrict_to(ConstraintState& constraint) {
  constraint.fill_mask(allowed_);
  for (std::size_t word = 0; word < allowed_.size(); ++word) {
    const std::uint32_t bits = allowed_[word];
    if (bits == ~std::uint32_t{0}) continue;
    const std::span<float> scores = std::span(scores_).subspan(word * 32, std::min<std::size_t>(32, scores_.size() - word * 32));
    if (bits == 0) {
      std::ranges::fill(scores, -kInfinity);
    } else {
      for (std::size_t bit = 0; bit < scores.size(); ++bit) scores[bit] = (bits >> bit & 1) != 0 ? scores[bit] : -kInfinity;
    }
  }
}

// What a constraint leaves may be banned tokens alone: the text is complete and min_tokens are not there yet. Then it ends.
void Sampler::ban(const SamplingState& state) {
  const auto is_banned = [&](std::size_t id) { return std::ranges::find(state.banned, static_cast<TokenId>(id)) != state.banned.end(); };
  if (state.constraint != nullptr) {
    bool others = false;
    for (std::size_t id = 0; id < scores_.size() && !others; ++id) others = scores_[id] > -kInfinity && !is_banned(id);
    if (!others) return;
  }
  for (const TokenId id : state.banned) scores_[index(id)] = -kInfinity;
}

LogWeights Sampler::weigh(std::span<const float> scores, float highest, float temperature) {
  const float scale = 1.0F / std::max(temperature, kLowestTemperature);
  LogWeights made{scores, scale, highest * scale};
  if (std::fabs(made.shift) > kLargestShift) {
    for (std::size_t i = 0; i < scores.size(); ++i) scores_[i] = scores[i] - highest;
    made = {scores_, scale, 0.0F};
  }
  table_.exp_sum(made.scores.data(), static_cast<std::int64_t>(made.scores.size()), made.scale, made.shift, weights_.data());
  return made;
}

SampledToken Sampler::draw_in_order(std::span<const float> scores, float highest, const SamplingState& state, TokenId best) {
  const SamplingParams& params = state.params;
  LogWeights log_weights = weigh(scores, highest, 1.0F);
  candidates_.take_all(weights_);
  for (const SamplerStep step : params.steps) {
    switch (step) {
      case SamplerStep::kTopNSigma:
        if (params.top_n_sigma > 0.0F) candidates_.keep_top_n_sigma(static_cast<double>(params.top_n_sigma), log_weights);
        break;
      case SamplerStep::kTopK:
        if (params.top_k > 0) candidates_.keep_best(index(params.top_k));
        break;
      case SamplerStep::kTypicalP:
        if (params.typical_p < 1.0F) candidates_.keep_typical(static_cast<double>(params.typical_p), log_weights);
        break;
      case SamplerStep::kTopP:
        if (params.top_p < 1.0F) candidates_.keep_top_p(static_cast<double>(params.top_p));
        break;
      case SamplerStep::kMinP:
        if (params.min_p > 0.0F) candidates_.keep_min_p(params.min_p);
        break;
      case SamplerStep::kXtc:
        if (xtc_applies(state)) candidates_.exclude_top_choices(static_cast<double>(params.xtc_threshold));
        break;
      case SamplerStep::kTemperature: {
        const float cooling = 1.0F / std::max(params.temperature, kLowestTemperature);
        log_weights.scale *= cooling;
        log_weights.shift *= cooling;
        candidates_.weigh(log_weights);
        break;
      }
    }
  }
  return draw_from_list(state, best);
}

// Top-p by rejection: a draw from a superset of the run is taken when less than top_p of the mass is better than it, which is what
// being of the run means. If not, nothing that is no better is of the run either, and the next draw is from the rest. What is drawn
// last has the distribution of a draw from the run, and on average the first draw hits with probability top_p or more.
SampledToken Sampler::draw_from_all(const SamplingState& state, TokenId best) {
  const SamplingParams& params = state.params;
  double mass = masses_.measure(weights_, {});
  const double all = mass;
  const double wanted = static_cast<double>(params.top_p) * mass;
  const float least = params.min_p * weights_[index(best)];
  if (least > 0.0F) mass = masses_.measure(weights_, {least, static_cast<TokenId>(weights_.size())});
  for (std::uint32_t draw = 0;; ++draw) {
    const TokenId token = masses_.find(weights_, uniform(state, draw) * mass).value_or(best);
    const double better = params.top_p >= 1.0F || token == best ? 0.0 : masses_.measure(weights_, {weights_[index(token)], token});
    if (better == 0.0 || better < wanted) {
      if (!params.drawn_logprob) return {token, state.mirostat_mu};
      const bool cut = params.top_p < 1.0F || least > 0.0F;
      return {token, state.mirostat_mu,
              log_share(params, static_cast<double>(weights_[index(token)]), cut ? mass_drawn_from(params) : all)};
    }
    mass = better;
  }
}

// What top-p and min-p leave of all weights: looked for only where somebody asks how likely the token was among them.
double Sampler::mass_drawn_from(const SamplingParams& params) {
  candidates_.take_all(weights_);
  if (params.top_p < 1.0F) candidates_.keep_top_p(static_cast<double>(params.top_p));
  if (params.min_p > 0.0F) candidates_.keep_min_p(params.min_p);
  return candidates_.mass();
}

SampledToken Sampler::draw_mirostat_1(const SamplingState& state, TokenId best) {
  candidates_.take_best(weights_, kMirostatFitted);
  std::array<double, kMirostatFitted> weights{};
  std::size_t fitted = 0;
  for (const Candidate& candidate : candidates_.sorted()) weights[fitted++] = static_cast<double>(candidate.weight);
  const std::size_t k = mirostat_top_k(std::span(weights).first(fitted), state.mirostat_mu, static_cast<std::int32_t>(weights_.size()));
  candidates_.take_best(weights_, k);
  const auto drawn = candidates_.draw(uniform(state));
  if (!drawn) return {best, state.mirostat_mu};
  const auto weight = static_cast<double>(drawn->weight);
  const double mass = candidates_.mass();
  return {drawn->id, mirostat_next(state.params, state.mirostat_mu, weight / mass), log_share(state.params, weight, mass)};
}

SampledToken Sampler::draw_mirostat_2(const SamplingState& state, TokenId best) {
  const double all = masses_.measure(weights_, {});
  const double limit = std::min(mirostat_least_probability(state.mirostat_mu) * all, static_cast<double>(weights_[index(best)]));
  auto least = static_cast<float>(limit);
  if (static_cast<double>(least) < limit) least = std::nextafter(least, kInfinity);
  const double mass = masses_.measure(weights_, {least, static_cast<TokenId>(weights_.size())});
  const TokenId token = masses_.find(weights_, uniform(state) * mass).value_or(best);
  const auto weight = static_cast<double>(weights_[index(token)]);
  return {token, mirostat_next(state.params, state.mirostat_mu, weight / mass), log_share(state.params, weight, mass)};
}

Logprob Sampler::log_probability(std::span<const float> logits, TokenId token, std::span<TokenLogprob> top) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const float best = logits[static_cast<std::size_t>(table_.argmax(logits.data(), count))];
  const float sum = table_.exp_sum(logits.data(), count, 1.0F, best, weights_.data());
  const double log_total = static_cast<double>(best) + fixed_log(static_cast<double>(sum));
  const auto logprob = [&](TokenId id) { return static_cast<float>(static_cast<double>(logits[index(id)]) - log_total); };
  Logprob out{.value = logprob(token)};
  if (top.empty()) return out;

  // Insertion into a short sorted list; ids come in order, so equal values keep the lowest first.
  std::size_t filled = 0;
  float threshold = -kInfinity;
  scan_above(logits, threshold, [&](std::size_t i) {
    std::size_t slot = filled < top.size() ? filled++ : top.size() - 1;
    for (; slot > 0 && logits[index(top[slot - 1].id)] < logits[i]; --slot) top[slot] = top[slot - 1];
    top[slot].id = static_cast<TokenId>(i);
    if (filled == top.size()) threshold = logits[index(top.back().id)];
  });
  for (TokenLogprob& entry : top.first(filled)) entry.logprob = logprob(entry.id);
  out.top_count = static_cast<std::uint32_t>(filled);
  return out;
}

}  // namespace braid::model
