// The tokens that a draw may still give, and what cuts them down. Owns scratch for a whole vocabulary; allocates at construction
// only.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

struct Candidate {
  float weight = 0.0F;  // a probability that is not normalised
  TokenId id = 0;
};

// The order of all truncations: the larger weight first, of equal ones the lower id.
inline bool better(const Candidate& a, const Candidate& b) { return a.weight > b.weight || (a.weight == b.weight && a.id < b.id); }

// What weights were made of: their natural logarithms are score * scale - shift.
struct LogWeights {
  std::span<const float> scores;  // [vocab]
  float scale = 1.0F;
  float shift = 0.0F;

  double of(TokenId id) const {
    return static_cast<double>(scores[static_cast<std::size_t>(id)]) * static_cast<double>(scale) - static_cast<double>(shift);
  }
};

// Weights of 0 never become candidates. Nothing is ever sorted in full: runs of best candidates are found by partitioning.
class CandidateList {
 public:
  explicit CandidateList(std::size_t vocab);

  // Fills the list: with the k best of [vocab] weights, or with all.
  void take_best(std::span<const float> weights, std::size_t k);
  void take_all(std::span<const float> weights);

  // Of the candidates the k best, k at least 1.
  void keep_best(std::size_t k);
  // Those whose score is within so many standard deviations of the best one's (Tang et al., "Top-nσ", 2024).
  void keep_top_n_sigma(double n, const LogWeights& log_weights);
  // Gives those that are left weights of their own, the best one about 1.
  void weigh(const LogWeights& log_weights);

  // Locally typical sampling (Meister et al., 2022): the shortest run of candidates that holds `share` of the mass, those first
  // whose surprise is nearest the entropy, of equally near ones the lower id first.
  void keep_typical(double share, const LogWeights& log_weights);
  // The shortest run of best candidates that holds `share` of the mass (Holtzman et al., 2020).
  void keep_top_p(double share);
  // Those with at least `share` of the best candidate's weight (Nguyen et al., "Turning up the heat", 2024).
  void keep_min_p(float share);
  // XTC, "exclude top choices" (proposed for text-generation-webui in 2024): of the candidates with at least `share` of the mass
  // only the worst stays.
  void exclude_top_choices(double share);

  // The best first; sorts.
  std::span<const Candidate> sorted();
  double mass() const;
  // The candidate at which the running sum of weights passes `uniform` of the mass; nullopt when there is none.
  std::optional<Candidate> draw(double uniform) const;

 private:
  // Keeps the shortest run, in the order of `before`, that holds `mass`, and one candidate at least.
  template <class Before>
  void keep_run(double mass, Before&& before);

  std::vector<Candidate> candidates_;
};

}  // namespace braid::model
