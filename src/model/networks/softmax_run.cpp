#include "model/networks/softmax_run.h"

#include "model/networks/layer_functions.h"

#include <algorithm>
#include <cstddef>

namespace braid::model {

SoftmaxRun::SoftmaxRun(const LayerCall& call) : x_(*call.inputs[0]), is_log_(call.layer.type == LayerType::kLogSoftmax) {
  const std::size_t axis = axis_of(call.layer, x_.shape);
  length_ = x_.shape[axis];
  stride_ = value_count({x_.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x_.shape.end()});
  lines_ = value_count({x_.shape.begin(), x_.shape.begin() + static_cast<std::ptrdiff_t>(axis)}) * stride_;
  if (length_ == 0) lines_ = 0;
  add_result(x_.shape);
}

Result<void> SoftmaxRun::advance() {
  if (!make_room(results_.front())) return {};
  for (std::int64_t left = parts_of_piece(kExactFunctionWork); left > 0 && next_line_ < lines_;) {
    const std::int64_t count = std::min(left, length_ - at_);
    compute(count);
    left -= count;
    at_ += count;
    if (at_ == length_) end_pass();
  }
  return {};
}

// The next values of the pass.
void SoftmaxRun::compute(std::int64_t count) {
  const std::int64_t place = next_line_ / stride_ * length_ * stride_ + next_line_ % stride_ + at_ * stride_;
  const float* const x = x_.floats.data() + place;
  float* const out = results_.front().floats.data() + place;
  switch (pass_) {
    case Pass::kLook:
      return line_.look(x, count, stride_);
    case Pass::kAdd:
      return line_.add(x, count, stride_);
    case Pass::kWrite:
      return is_log_ ? line_.write_log(x, count, stride_, out) : line_.write(x, count, stride_, out);
  }
}

void SoftmaxRun::end_pass() {
  at_ = 0;
  if (pass_ == Pass::kLook) {
    pass_ = Pass::kAdd;
  } else if (pass_ == Pass::kAdd) {
    pass_ = Pass::kWrite;
  } else {
    pass_ = Pass::kLook;
    line_ = SoftmaxLine();
    ++next_line_;
  }
}

}  // namespace braid::model
