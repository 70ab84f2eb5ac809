// Softmax, or its logarithm, along an axis.
#pragma once

#include "model/networks/activations.h"
#include "model/networks/layer_run.h"

#include <cstdint>

namespace braid::model {

// Reads each line twice and writes it then; a line may be longer than a piece.
class SoftmaxRun final : public LayerRun {
 public:
  explicit SoftmaxRun(const LayerCall& call);

  Result<void> advance() override;
  bool done() const override { return next_line_ == lines_ && has_room(results_.front()); }

 private:
  enum class Pass { kLook, kAdd, kWrite };

  void compute(std::int64_t count);
  void end_pass();

  const Tensor& x_;
  const bool is_log_;
  std::int64_t length_ = 0;  // of a line
  std::int64_t stride_ = 0;  // of its values; as many lines begin side by side
  std::int64_t lines_ = 0;
  std::int64_t next_line_ = 0;
  std::int64_t at_ = 0;  // in its pass
  Pass pass_ = Pass::kLook;
  SoftmaxLine line_;
};

}  // namespace braid::model
