// Who computes the passes of a model in the place of its own weights: ranks elsewhere.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "model/copies.h"
#include "model/rows.h"
#include "step/pass.h"
#include "step/step.h"

#include <cstdint>
#include <memory>
#include <span>

namespace braid::model {

struct Adapter;
class AdapterTable;
class Decoder;

// Strand only, but for what says otherwise. Throws when who computes is gone: nothing that the pool held is left then.
class PassRunner {
 public:
  virtual ~PassRunner() = default;

  // The thread that loads.
  virtual Result<void> allocate(std::int32_t blocks) = 0;

  // To all who compute, or to none of them: an error of one is everybody's. Any thread, one at a time, while passes run.
  virtual Result<std::shared_ptr<const Copies>> hand_out(const Adapter& adapter) = 0;
  // Its magnitudes, which are lengths yet, are divided by norms of the weights that these copies are. Likewise.
  virtual Result<void> measure(Adapter& adapter, const Copies& weights) = 0;
  // A safetensors file of all or some tensors, the others being those of `older`.
  virtual Result<std::shared_ptr<const Copies>> hand_out(const files::ByteSource& tensors, bool partial, const Copies& older) = 0;
  // Of the weights that they have loaded. Once.
  virtual std::shared_ptr<const Copies> loaded() = 0;

  // Forks, and blocks that are given back. Others are not for passes elsewhere.
  virtual void move(const step::StepPlan& plan) = 0;
  // With the copies of the decoder and of the adapters that the pass's tokens name.
  virtual void run(const step::Pass& pass, const Decoder& decoder, const AdapterTable& adapters) = 0;
  // Of `count` of the tokens picked, from the `begin`-th on, [count, vocab]; valid until the next call.
  virtual Rows logits(std::int64_t begin, std::int64_t count) = 0;
  // After the final norm, [embedding], of one of the tokens picked.
  virtual void hidden(std::int64_t picked, std::span<float> out) = 0;
};

}  // namespace braid::model
