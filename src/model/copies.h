// What those who compute a model elsewhere have of an adapter or of weights.
#pragma once

#include <cstdint>

namespace braid::model {

// All of them have it until this is destroyed, on any thread, when no step needs it any more.
class Copies {
 public:
  explicit Copies(std::uint64_t its_number) : number(its_number) {}
  virtual ~Copies() = default;
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  const std::uint64_t number;  // by which passes name it
};

}  // namespace braid::model
