#include "model/state_layout.h"

namespace braid::model {

// One part after the other; what does not fit a block any more begins the next one.
StateLayout::StateLayout(const std::vector<StateShape>& layers, std::size_t block_bytes) {
  std::size_t used = block_bytes;
  for (const StateShape& layer : layers) {
    first_.push_back(places_.size());
    for (const std::int64_t floats : layer) {
      if (used + part_bytes(floats) > block_bytes) {
        ++blocks_;
        used = 0;
      }
      places_.push_back({blocks_ - 1, used});
      floats_.push_back(floats);
      used += part_bytes(floats);
    }
  }
}

}  // namespace braid::model
