// From the hidden states of a sequence's tokens to its one vector. Strand only.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// The mean is a sum in the order of positions, in double: the same bits however the sequence was cut into slices.
class Pool {
 public:
  // `width`: of a hidden state; `from`: with kEach, the first token whose own is wanted.
  void start(Pooling pooling, std::int32_t width, std::int32_t from = 0);

  bool is_off() const { return pooling_ == Pooling::kNone; }

  // Whether the vector follows from this token, too; `is_last`: it is the sequence's last one.
  bool wants(std::int32_t position, bool is_last) const {
    switch (pooling_) {
      case Pooling::kNone:
        return false;
      case Pooling::kLast:
        return is_last;
      case Pooling::kMean:
        return true;
      case Pooling::kEach:
        return position >= from_;
      case Pooling::kFirst:
        return position == 0;
    }
    return false;
  }

  // The next of the tokens that it wants. hidden: [width].
  void add(std::span<const float> hidden);
  // Whether the token at `position` may come next.
  bool expects(std::int32_t position) const {
    return (pooling_ != Pooling::kMean && pooling_ != Pooling::kEach) || from_ + count_ == position;
  }

  // The vector: of kEach so many of the width as tokens were added. Empty when nothing was, or when a number of it is none.
  std::vector<float> vector() const;

 private:
  Pooling pooling_ = Pooling::kNone;
  std::vector<double> sum_;  // [width]
  std::vector<float> each_;  // of kEach: [count, width]
  std::int32_t from_ = 0;
  std::int32_t count_ = 0;
};

}  // namespace braid::model
