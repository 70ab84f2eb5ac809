#include "model/pooling.h"

#include <algorithm>
#include <cmath>

namespace braid::model {

void Pool::start(Pooling pooling, std::int32_t width, std::int32_t from) {
  pooling_ = pooling;
  from_ = pooling == Pooling::kEach ? from : 0;
  count_ = 0;
  each_ = {};
  if (pooling != Pooling::kNone) sum_.assign(static_cast<std::size_t>(width), 0.0);
}

void Pool::add(std::span<const float> hidden) {
  ++count_;
  if (pooling_ == Pooling::kEach) {
    each_.insert(each_.end(), hidden.begin(), hidden.end());
    return;
  }
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += static_cast<double>(hidden[i]);
}

std::vector<float> Pool::vector() const {
  std::vector<float> vector = each_;
  if (count_ > 0 && pooling_ != Pooling::kEach)
    for (const double sum : sum_) vector.push_back(static_cast<float>(sum / count_));
  if (!std::ranges::all_of(vector, [](float value) { return std::isfinite(value); })) vector.clear();
  return vector;
}

}  // namespace braid::model
