// Ranks that are threads of one process.
#pragma once

#include "model/share.h"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <span>
#include <vector>

namespace braid::model::test {

// What the ranks of one model have in common.
class SharedValues {
 public:
  explicit SharedValues(int ranks) : barrier_(ranks), own_(static_cast<std::size_t>(ranks)) {}

  void gather(int rank, std::span<const float> own, std::span<float> all) {
    own_[static_cast<std::size_t>(rank)] = own;
    barrier_.arrive_and_wait();
    auto out = all.begin();
    for (const std::span<const float> values : own_) out = std::ranges::copy(values, out).out;
    barrier_.arrive_and_wait();  // nobody's values go before all have read them
  }

  // A rank that has no more to say holds nobody up.
  void leave() { barrier_.arrive_and_drop(); }

 private:
  std::barrier<> barrier_;
  std::vector<std::span<const float>> own_;
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(SharedValues& shared, int rank) : shared_(shared), rank_(rank) {}

  void gather(std::span<const float> own, std::span<const std::size_t>, std::span<float> all) override { shared_.gather(rank_, own, all); }

 private:
  SharedValues& shared_;
  const int rank_;
};

}  // namespace braid::model::test
