// How many of something there are.
#pragma once

#include <cstdint>

namespace braid::net {

// Counts up while it lives.
class Count {
 public:
  explicit Count(std::uint32_t& counter) : counter_(counter) { ++counter_; }
  ~Count() { --counter_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::uint32_t& counter_;
};

}  // namespace braid::net
