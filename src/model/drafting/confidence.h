// How often a model's guesses have been right, by how sure it was of them.
#pragma once

#include <array>
#include <cstddef>

namespace braid::model {

// A model may be surer than it should be, or less: what its guesses of a kind have come to counts, and the probability that it gave them only
// as long as there were few. Older ones count less and less.
class Confidence {
 public:
  double chance(float logprob) const;
  void observe(float logprob, bool is_right);

 private:
  static constexpr std::size_t kBins = 16;  // of half a unit of log-probability each; the last one has all below
  static constexpr double kPrior = 4.0;     // guesses that the model's own word is worth
  static constexpr double kMemory = 256.0;

  static std::size_t bin_of(float logprob);

  std::array<double, kBins> made_{};
  std::array<double, kBins> right_{};
};

}  // namespace braid::model
