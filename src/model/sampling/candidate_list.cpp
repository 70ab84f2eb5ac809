#include "model/sampling/candidate_list.h"

#include "model/deterministic_math.h"
#include "model/sampling/scan_above.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace braid::model {
namespace {

constexpr std::size_t kSortAtMost = 32;  // candidates that are sorted rather than partitioned

}  // namespace

CandidateList::CandidateList(std::size_t vocab) { candidates_.reserve(vocab); }

void CandidateList::take_best(std::span<const float> weights, std::size_t k) {
  candidates_.clear();
  float threshold = 0.0F;
  const std::size_t room = std::min(candidates_.capacity(), 2 * k + 1024);
  const auto shrink = [&] {
    if (candidates_.size() <= k) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1), candidates_.end(), better);
    candidates_.resize(k);
    threshold = candidates_.back().weight;
  };
  scan_above(weights, threshold, [&](std::size_t i) {
    candidates_.push_back({weights[i], static_cast<TokenId>(i)});
    if (candidates_.size() >= room) shrink();
  });
  shrink();
}

void CandidateList::take_all(std::span<const float> weights) {
  candidates_.clear();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0.0F) candidates_.push_back({weights[i], static_cast<TokenId>(i)});
}

void CandidateList::keep_best(std::size_t k) {
  if (candidates_.size() <= k) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1), candidates_.end(), better);
  candidates_.resize(k);
}

void CandidateList::keep_top_n_sigma(double n, const LogWeights& log_weights) {
  if (candidates_.empty()) return;
  double mean = 0.0;
  double best = log_weights.of(candidates_.front().id);
  for (const Candidate& candidate : candidates_) {
    mean += log_weights.of(candidate.id);
    best = std::max(best, log_weights.of(candidate.id));
  }
  mean /= static_cast<double>(candidates_.size());
  double squares = 0.0;
  for (const Candidate& candidate : candidates_) squares += (log_weights.of(candidate.id) - mean) * (log_weights.of(candidate.id) - mean);
  const double least = best - n * std::sqrt(squares / static_cast<double>(candidates_.size()));
  std::erase_if(candidates_, [&](const Candidate& candidate) { return log_weights.of(candidate.id) < least; });
}

void CandidateList::weigh(const LogWeights& log_weights) {
  if (candidates_.empty()) return;
  double best = log_weights.of(candidates_.front().id);
  for (const Candidate& candidate : candidates_) best = std::max(best, log_weights.of(candidate.id));
  for (Candidate& candidate : candidates_) candidate.weight = static_cast<float>(fixed_exp(log_weights.of(candidate.id) - best));
}

template <class Before>
void CandidateList::keep_run(double mass, Before&& before) {
  std::size_t begin = 0;
  std::size_t end = candidates_.size();
  double kept = 0.0;  // the mass of [0, begin), all before [begin, end)
  while (end - begin > kSortAtMost) {
    std::array probes{candidates_[begin], candidates_[begin + (end - begin) / 2], candidates_[end - 1]};
    std::ranges::sort(probes, before);
    const Candidate pivot = probes[1];
    const auto first = candidates_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto split = std::partition(first, candidates_.begin() + static_cast<std::ptrdiff_t>(end),
                                      [&](const Candidate& candidate) { return before(candidate, pivot); });
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
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.begin() + static_cast<std::ptrdiff_t>(end), before);
  while (begin < end && kept < mass) kept += static_cast<double>(candidates_[begin++].weight);
  candidates_.resize(std::max<std::size_t>(begin, std::min<std::size_t>(1, candidates_.size())));
}

void CandidateList::keep_typical(double share, const LogWeights& log_weights) {
  const double all = mass();
  double mean = 0.0;  // of the log-weights; a token's surprise less the entropy is this less its log-weight
  for (const Candidate& candidate : candidates_) mean += static_cast<double>(candidate.weight) * log_weights.of(candidate.id);
  mean /= all;
  keep_run(share * all, [&](const Candidate& a, const Candidate& b) {
    const double far_a = std::fabs(mean - log_weights.of(a.id));
    const double far_b = std::fabs(mean - log_weights.of(b.id));
    return far_a < far_b || (far_a == far_b && a.id < b.id);
  });
}

void CandidateList::keep_top_p(double share) { keep_run(share * mass(), better); }

void CandidateList::keep_min_p(float share) {
  float best = 0.0F;
  for (const Candidate& candidate : candidates_) best = std::max(best, candidate.weight);
  std::erase_if(candidates_, [least = share * best](const Candidate& candidate) { return candidate.weight < least; });
}

void CandidateList::exclude_top_choices(double share) {
  const double least = share * mass();
  const Candidate* worst = nullptr;  // of the top choices
  for (const Candidate& candidate : candidates_)
    if (static_cast<double>(candidate.weight) >= least && (worst == nullptr || better(*worst, candidate))) worst = &candidate;
  if (worst == nullptr) return;
  std::erase_if(candidates_, [last = *worst](const Candidate& candidate) { return better(candidate, last); });
}

std::span<const Candidate> CandidateList::sorted() {
  std::ranges::sort(candidates_, better);
  return candidates_;
}

double CandidateList::mass() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.weight);
  return total;
}

std::optional<Candidate> CandidateList::draw(double uniform) const {
  if (candidates_.empty()) return std::nullopt;
  const double target = uniform * mass();
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    sum += static_cast<double>(candidate.weight);
    if (sum > target) return candidate;
  }
  return candidates_.back();
}

}  // namespace braid::model
