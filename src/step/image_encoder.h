// What a model does that sees: an image to vectors, each patch attending to all others, so that such a pass is left and taken up again
// between parts of layers, as an encoder's of texts is.
#pragma once

#include "braid/pixels.h"
#include "braid/result.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace braid::step {

// An image on its way. Strand only.
class ImagePass {
 public:
  virtual ~ImagePass() = default;

  // Computes the next part: a few milliseconds. False: all is done. The bits do not depend on where the pass was left.
  virtual bool advance() = 0;

  // Once all is done, and once: [Pixels::vectors, width]; empty where a number of it is none.
  virtual std::vector<float> take() = 0;
};

class ImageEncoder {
 public:
  virtual ~ImageEncoder() = default;

  // kInvalidArgument: the pixels are of another size than the model reads, or `vectors` is not what becomes of them. Any thread.
  virtual Result<void> check(const Pixels& pixels) const = 0;

  // Of pixels that were checked. The encoder outlives its passes. Strand only.
  virtual std::unique_ptr<ImagePass> begin(SharedPixels pixels) = 0;
};

}  // namespace braid::step
