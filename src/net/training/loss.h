// How wrong scores are: of a preference by how much the preferred text leads, of a score by how far it is off.
#pragma once

#include <algorithm>
#include <cmath>

namespace braid::net::training {

struct Loss {
  double value = 0.0;
  double slope = 0.0;  // by what it is of
};

// -log sigmoid(lead), of Bradley and Terry's likelihood.
inline Loss loss_of_lead(double lead) {
  return {std::max(-lead, 0.0) + std::log1p(std::exp(-std::fabs(lead))), -1.0 / (1.0 + std::exp(lead))};
}
inline Loss loss_of_error(double error) { return {0.5 * error * error, error}; }

}  // namespace braid::net::training
