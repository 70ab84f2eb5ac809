// All matrices and norms of an encoder that adapters may change.
#pragma once

#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_weights.h"

#include <vector>

namespace braid::model {

struct EncoderPart {
  const EncoderLinear* linear;
  const LayerMatrix* packed;
  bool is_head = false;
};

struct EncoderNormPart {
  const EncoderNorm* norm;
  const EncoderNormWeights* weights;
};

// Both outlive what is returned. Not among them: experts, but for what chooses them, and what follows pooling.
std::vector<EncoderPart> parts_of(const EncoderShape& shape, const EncoderWeights& weights);
// Without those that have no weights.
std::vector<EncoderNormPart> norms_of(const EncoderShape& shape, const EncoderWeights& weights);

}  // namespace braid::model
