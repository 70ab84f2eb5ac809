// What makes a policy of a network: which distribution its outputs describe, and how actions are drawn from it. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

enum class ActionKind : std::uint8_t {
  kCategorical,       // logits [..., n]: one action of n
  kMultiDiscrete,     // logits [..., sum of sizes]: of each group of logits one action
  kBernoulli,         // logits [..., n]: n actions, each 0 or 1
  kGaussian,          // means [..., n], independent of each other
  kSquashedGaussian,  // likewise; the action is the hyperbolic tangent of what is drawn, stretched to [low, high]
};

// A hidden state: what the network takes, and what it gives for its next step.
struct PolicyState {
  std::size_t input = 0;   // place in Predictor::inputs()
  std::size_t output = 0;  // place in Predictor::outputs()
};

struct PolicyForm {
  ActionKind kind = ActionKind::kCategorical;
  std::size_t parameters = 0;                  // place in the outputs: logits or means
  std::vector<std::int64_t> sizes = {};        // kMultiDiscrete: of the groups
  std::optional<std::size_t> deviations = {};  // Gaussians: place in the outputs, the logarithms of standard deviations [..., n]; or
  std::vector<double> fixed_deviations = {};   // the same logarithms for all observations: [n]
  std::optional<double> least_deviation = {};  // their bounds
  std::optional<double> most_deviation = {};
  std::vector<double> low = {};  // kSquashedGaussian: [n]
  std::vector<double> high = {};
  std::optional<std::size_t> value = {};  // place in the outputs
  std::vector<PolicyState> states = {};
};

// How the actions of one request are chosen. Rows are observations: all dimensions of the logits or means but the last, flattened. What is
// drawn for a row depends on its seed, the step, and, where there is one seed for all, on the row's place; on nothing else.
struct ActionDraw {
  bool deterministic = false;           // the most likely action; a Gaussian's mean
  std::vector<std::uint64_t> seeds{0};  // one for all rows, or one for each
  std::int64_t step = 0;                // of the episode: not negative
};

}  // namespace braid
