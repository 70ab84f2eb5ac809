#include "model/encoders/encoder_parts.h"

#include <cstddef>

namespace braid::model {

std::vector<EncoderPart> parts_of(const EncoderShape& shape, const EncoderWeights& weights) {
  std::vector<EncoderPart> all;
  const auto add = [&](const EncoderLinear& linear, const LayerMatrix& matrix, bool is_head = false) {
    if (linear && matrix.matrix.outputs > 0) all.push_back({&linear, &matrix, is_head});
  };
  add(shape.embedding_projection, weights.embedding_projection);
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const EncoderLayer& layer = shape.layers[i];
    const EncoderLayerWeights& own = weights.layers[i];
    add(layer.query, own.query.base);
    add(layer.key, own.key.base);
    add(layer.value, own.value.base);
    add(layer.out, own.out.base);
    if (own.experts) {
      add(layer.experts.router, own.experts->router);
      continue;
    }
    add(layer.gate, own.gate.base);
    add(layer.up, own.up.base);
    add(layer.down, own.down.base);
  }
  if (shape.head) {
    add(shape.head->dense, weights.head->dense, true);
    add(shape.head->out, weights.head->out, true);
  }
  return all;
}

std::vector<EncoderNormPart> norms_of(const EncoderShape& shape, const EncoderWeights& weights) {
  std::vector<EncoderNormPart> all;
  const auto add = [&](const EncoderNorm& norm, const EncoderNormWeights& own) {
    if (!norm.weight.empty() && own) all.push_back({&norm, &own});
  };
  add(shape.embedding_norm, weights.embedding_norm);
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const EncoderLayer& layer = shape.layers[i];
    const EncoderLayerWeights& own = weights.layers[i];
    add(layer.before_attention, own.before_attention);
    add(layer.query_norm, own.query_norm);
    add(layer.key_norm, own.key_norm);
    add(layer.value_norm, own.value_norm);
    add(layer.after_attention, own.after_attention);
    add(layer.joined_attention, own.joined_attention);
    add(layer.rejoined_attention, own.rejoined_attention);
    add(layer.before_feed_forward, own.before_feed_forward);
    add(layer.after_feed_forward, own.after_feed_forward);
    add(layer.joined_feed_forward, own.joined_feed_forward);
  }
  add(shape.final_norm, weights.final_norm);
  return all;
}

}  // namespace braid::model
