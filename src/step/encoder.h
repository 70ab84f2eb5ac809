// What a model does that reads whole texts, each token seeing all others. Such a pass cannot be cut by tokens: it is left and taken up
// again between parts of layers.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::step {

struct EncoderText {
  std::vector<TokenId> tokens;   // not empty, each within the vocabulary, at most the model's context
  std::int32_t second_text = 0;  // GenerationRequest's
  Pooling pooling = Pooling::kMean;
  PooledOutput output = PooledOutput::kVector;
  std::int32_t task = 0;                     // GenerationRequest's
  std::shared_ptr<const void> adapter = {};  // AdapterUse::lease, of which the encoder knows what it is; null: its weights as they are
};

// Some texts on their way through a model. Strand only.
class EncoderPass {
 public:
  virtual ~EncoderPass() = default;

  // Computes the next part: a few milliseconds. False: all is done. The bits of a text depend neither on where the pass was left nor on the
  // other texts.
  virtual bool advance() = 0;

  // Of a text by its index, once all is done: empty where a number of it is none.
  virtual std::vector<float> take(std::size_t text) = 0;
};

class Encoder {
 public:
  virtual ~Encoder() = default;

  // The encoder outlives its passes. Strand only.
  virtual std::unique_ptr<EncoderPass> begin(std::vector<EncoderText> texts) = 0;
};

}  // namespace braid::step
