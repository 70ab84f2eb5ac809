// Where the recurrent state of a sequence lies in its blocks of the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::model {

// A layer's state is a number of parts, each of so many floats of 32 bits; none lies across two blocks. Empty: the layer has no state.
using StateShape = std::vector<std::int64_t>;

// What a part takes: whole cache lines, since members of the team write to neighbours.
inline std::size_t part_bytes(std::int64_t floats) { return (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64; }

class StateLayout {
 public:
  StateLayout() = default;
  // `layers`: of each layer its state. Every part fits a block.
  StateLayout(const std::vector<StateShape>& layers, std::size_t block_bytes);

  std::int32_t blocks() const { return blocks_; }  // of the pool that a sequence's state takes; 0: the model has none

  struct Place {
    std::int32_t block = 0;  // among the state's
    std::size_t offset = 0;  // bytes
  };
  // Calls use(offset, bytes) for each part of the state's block number `block`, in order. What lies between and behind may hold anything.
  template <class Use>
  void for_written(std::int32_t block, Use&& use) const {
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].block == block) use(places_[i].offset, static_cast<std::size_t>(floats_[i]) * sizeof(float));
  }

  // Calls use(layer, its part, place, floats) for all parts.
  template <class Use>
  void for_parts(Use&& use) const {
    for (std::size_t layer = 0; layer < first_.size(); ++layer) {
      const std::size_t end = layer + 1 < first_.size() ? first_[layer + 1] : places_.size();
      for (std::size_t i = first_[layer]; i < end; ++i) use(layer, i - first_[layer], places_[i], floats_[i]);
    }
  }

  const Place& place(std::size_t layer, std::int32_t part) const { return places_[first_[layer] + static_cast<std::size_t>(part)]; }

 private:
  std::vector<std::size_t> first_;  // by layer, into places_
  std::vector<Place> places_;
  std::vector<std::int64_t> floats_;  // of each place
  std::int32_t blocks_ = 0;
};

}  // namespace braid::model
