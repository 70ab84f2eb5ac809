#include "model/encoders/encoder_weights.h"

#include "model/encoders/encoder_loader.h"

#include <cstddef>
#include <fmt/format.h>

namespace braid::model {

Result<EncoderWeights> load_encoder_weights(const EncoderShape& shape, const EncoderTensors& tensors,
                                            const std::vector<const EncoderTensors*>& modules, const kernels::KernelTable& table,
                                            kernels::WeightType type) {
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0)
    return Error{ErrorCode::kBadFile, fmt::format("{} heads cannot share {} heads of keys and values", shape.heads, shape.kv_heads), {}};
  if (shape.head && shape.head->out.outputs < 1) return Error{ErrorCode::kBadFile, "the head has no classes", {}};
  EncoderWeights weights;
  EncoderLoader loader(tensors, table, type, weights);
  weights.tokens = loader.table(shape.tokens, shape.vocabulary, shape);
  weights.positions = loader.rows(shape.positions, shape.first_position + shape.context, shape.embedded);
  weights.types = loader.table(shape.types, shape.type_count, shape);
  weights.embedding_norm = loader.norm(shape.embedding_norm, shape.embedded);
  weights.embedding_projection = loader.linear(shape.embedding_projection);
  weights.distance_bias = loader.rows(shape.distance_bias, shape.distance_buckets, shape.heads);
  for (const EncoderLayer& layer : shape.layers) {
    if (loader.error) break;
    weights.layers.push_back(loader.layer(layer, shape));
  }
  weights.final_norm = loader.norm(shape.final_norm, shape.width);
  if (shape.head) {
    EncoderHeadWeights& head = weights.head.emplace();
    head.dense = loader.linear(shape.head->dense);
    head.norm = loader.norm(shape.head->norm, shape.width);
    head.out = loader.linear(shape.head->out);
  }
  if (loader.error) return *loader.error;
  for (std::size_t i = 0; i < shape.dense.size(); ++i) {
    EncoderLoader module(*modules[i], table, kernels::WeightType::kF32, weights);
    weights.dense.push_back(module.linear(shape.dense[i].linear));
    if (module.error) return *module.error;
  }
  return weights;
}

}  // namespace braid::model
