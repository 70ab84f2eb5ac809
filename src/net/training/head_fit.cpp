#include "net/training/head_fit.h"

#include "net/training/loss.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::net::training {
namespace {

constexpr double kFirstDecay = 0.9;
constexpr double kSecondDecay = 0.999;
constexpr double kLeastDeviation = 1e-6;  // of an input that says nothing

}  // namespace

HeadFit::HeadFit(std::vector<std::vector<float>> vectors, std::vector<Example> examples, FitOptions options)
    : examples_(std::move(examples)), options_(std::move(options)), width_(vectors.front().size()), weight_(width_, 0.0),
      first_(width_ + 1, 0.0), second_(width_ + 1, 0.0) {
  standardise(vectors);
  if (options_.begin) {
    bias_ = static_cast<double>(options_.begin->bias);
    for (std::size_t i = 0; i < width_; ++i) {
      const auto own = static_cast<double>(options_.begin->weight[i]);
      weight_[i] = own * deviation_[i];
      bias_ += own * mean_[i];
    }
  } else if (!examples_.front().rejected) {
    const std::size_t count = examples_.size() - options_.held_out;
    for (std::size_t i = 0; i < count; ++i) bias_ += static_cast<double>(examples_[i].score) / static_cast<double>(count);
  }
}

void HeadFit::standardise(const std::vector<std::vector<float>>& vectors) {
  const auto count = static_cast<double>(vectors.size());
  mean_.assign(width_, 0.0);
  deviation_.assign(width_, 0.0);
  for (const auto& vector : vectors)
    for (std::size_t i = 0; i < width_; ++i) mean_[i] += static_cast<double>(vector[i]) / count;
  for (const auto& vector : vectors)
    for (std::size_t i = 0; i < width_; ++i) deviation_[i] += std::pow(static_cast<double>(vector[i]) - mean_[i], 2) / count;
  for (double& deviation : deviation_) deviation = std::max(std::sqrt(deviation), kLeastDeviation);
  for (const auto& vector : vectors) {
    std::vector<double>& input = inputs_.emplace_back(width_);
    for (std::size_t i = 0; i < width_; ++i) input[i] = (static_cast<double>(vector[i]) - mean_[i]) / deviation_[i];
  }
}

double HeadFit::score(std::size_t text) const {
  double sum = bias_;
  for (std::size_t i = 0; i < width_; ++i) sum += weight_[i] * inputs_[text][i];
  return sum;
}

void HeadFit::advance() {
  const std::size_t count = examples_.size() - options_.held_out;
  std::vector<double> slope(inputs_.size(), 0.0);  // of the loss, by each text's score
  for (std::size_t i = 0; i < count; ++i) {
    const Example& example = examples_[i];
    if (example.rejected) {
      const double wrong = -loss_of_lead(score(example.text) - score(*example.rejected)).slope / static_cast<double>(count);
      slope[example.text] -= wrong;
      slope[*example.rejected] += wrong;
    } else {
      slope[example.text] += (score(example.text) - static_cast<double>(example.score)) / static_cast<double>(count);
    }
  }
  std::vector<double> gradient(width_ + 1, 0.0);
  for (std::size_t text = 0; text < inputs_.size(); ++text) {
    for (std::size_t i = 0; i < width_; ++i) gradient[i] += slope[text] * inputs_[text][i];
    gradient[width_] += slope[text];
  }
  for (std::size_t i = 0; i < width_; ++i) gradient[i] += options_.l2 * weight_[i];
  if (examples_.front().rejected) gradient[width_] = 0.0;  // a difference has no bias
  const double left = 1.0 - static_cast<double>(epoch_) / static_cast<double>(options_.epochs);
  ++epoch_;
  const double first_share = 1.0 - std::pow(kFirstDecay, epoch_);
  const double second_share = 1.0 - std::pow(kSecondDecay, epoch_);
  for (std::size_t i = 0; i <= width_; ++i) {
    first_[i] = kFirstDecay * first_[i] + (1.0 - kFirstDecay) * gradient[i];
    second_[i] = kSecondDecay * second_[i] + (1.0 - kSecondDecay) * gradient[i] * gradient[i];
    const double move = options_.learning_rate * left * (first_[i] / first_share) / (std::sqrt(second_[i] / second_share) + 1e-12);
    (i < width_ ? weight_[i] : bias_) -= move;
  }
}

LinearHead HeadFit::head() const {
  LinearHead head;
  double bias = bias_;
  for (std::size_t i = 0; i < width_; ++i) {
    head.weight.push_back(static_cast<float>(weight_[i] / deviation_[i]));
    bias -= weight_[i] / deviation_[i] * mean_[i];
  }
  head.bias = static_cast<float>(bias);
  return head;
}

FitFigures HeadFit::measure(std::size_t begin, std::size_t end) const {
  FitFigures figures;
  if (begin == end) return figures;
  for (std::size_t i = begin; i < end; ++i) {
    const Example& example = examples_[i];
    if (example.rejected) {
      const double lead = score(example.text) - score(*example.rejected);
      figures.loss += loss_of_lead(lead).value;
      figures.accuracy += lead > 0.0 ? 1.0 : 0.0;
    } else {
      figures.loss += loss_of_error(score(example.text) - static_cast<double>(example.score)).value;
    }
  }
  const auto count = static_cast<double>(end - begin);
  return {figures.loss / count, figures.accuracy / count};
}

}  // namespace braid::net::training
