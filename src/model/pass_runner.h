// Who computes the passes of a model in the place of its own weights: ranks elsewhere.
#pragma once

#include "braid/result.h"
#include "model/rows.h"
#include "step/pass.h"
#include "step/step.h"

#include <cstdint>
#include <span>

namespace braid::model {

// Strand only, but allocate(). All but that throw when who computes is gone: nothing that the pool held is left then.
class PassRunner {
 public:
  virtual ~PassRunner() = default;

  virtual Result<void> allocate(std::int32_t blocks) = 0;

  // Forks, and blocks that are given back. Others are not for passes elsewhere.
  virtual void move(const step::StepPlan& plan) = 0;
  virtual void run(const step::Pass& pass) = 0;
  // Of `count` of the tokens picked, from the `begin`-th on, [count, vocab]; valid until the next call.
  virtual Rows logits(std::int64_t begin, std::int64_t count) = 0;
  // After the final norm, [embedding], of one of the tokens picked.
  virtual void hidden(std::int64_t picked, std::span<float> out) = 0;
};

}  // namespace braid::model
