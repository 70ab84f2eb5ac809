// A linear head fitted to what texts are worth: to preferences between two of them (Bradley and Terry 1952), or to scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::net::training {

// score = weight · vector + bias
struct LinearHead {
  std::vector<float> weight;  // [width]
  float bias = 0.0F;
};

// Of two texts the one that is preferred, or a text and its score; by their places among the vectors.
struct Example {
  std::size_t text = 0;
  std::optional<std::size_t> rejected;  // nullopt: `score` holds
  float score = 0.0F;
};

struct FitOptions {
  std::int32_t epochs = 200;
  double learning_rate = 0.05;      // of Adam; falls to nothing along the epochs
  double l2 = 1e-3;                 // on the weights, the inputs having a deviation of 1
  std::size_t held_out = 0;         // the last examples, which are measured and not learnt from
  std::optional<LinearHead> begin;  // to go on from
};

struct FitFigures {
  double loss = 0.0;      // mean: -log sigmoid of the difference, or half the squared error
  double accuracy = 0.0;  // share of preferences that the scores agree with; of scores 0
};

// All sums run in float64 and in order: the same data give the same bits. One thread at a time.
class HeadFit {
 public:
  // vectors: [texts][width], all of one width; examples: all preferences, or all scores, more than are held out.
  HeadFit(std::vector<std::vector<float>> vectors, std::vector<Example> examples, FitOptions options);

  std::int32_t epoch() const { return epoch_; }
  bool done() const { return epoch_ >= options_.epochs; }
  // Multiplications that an epoch takes, about.
  std::size_t epoch_work() const { return 2 * inputs_.size() * width_; }
  void advance();  // by an epoch

  LinearHead head() const;
  FitFigures learnt() const { return measure(0, examples_.size() - options_.held_out); }
  FitFigures held_out() const { return measure(examples_.size() - options_.held_out, examples_.size()); }

 private:
  double score(std::size_t text) const;
  FitFigures measure(std::size_t begin, std::size_t end) const;
  void standardise(const std::vector<std::vector<float>>& vectors);

  const std::vector<Example> examples_;
  const FitOptions options_;
  std::size_t width_ = 0;
  std::vector<double> mean_, deviation_;     // [width]
  std::vector<std::vector<double>> inputs_;  // [texts][width], of mean 0 and deviation 1
  std::vector<double> weight_;               // [width], of these
  double bias_ = 0.0;
  std::vector<double> first_, second_;  // Adam's moments: of the weights, then of the bias
  std::int32_t epoch_ = 0;
};

}  // namespace braid::net::training
