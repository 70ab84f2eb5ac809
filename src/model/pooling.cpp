#include "model/pooling.h"

#include <algorithm>
#include <cmath>

namespace braid::model {

void Pool::start(Pooling pooling, std::int32_t width) {
  pooling_ = pooling;
  count_ = 0;
  if (pooling != Pooling::kNone) sum_.assign(static_cast<std::size_t>(width), 0.0);
}

void Pool::add(std::span<const float> hidden) {
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += static_cast<double>(hidden[i]);
  ++count_;
}

bool Pool::write(std::span<float> vector) const {
  if (count_ == 0) return false;
  for (std::size_t i = 0; i < sum_.size(); ++i) vector[i] = static_cast<float>(sum_[i] / count_);
  return std::ranges::all_of(vector, [](float value) { return std::isfinite(value); });
}

}  // namespace braid::model
