#include "model/images/tower_weights.h"

#define XXH_INLINE_ALL  // NOLINT: as xxhash.h wants it
#include "model/encoders/encoder_loader.h"
#include "model/images/tower_tensors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <utility>
#include <xxhash.h>

namespace braid::model {
namespace {

class WeightsDigest {
 public:
  WeightsDigest() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

  void take(const std::vector<float>& values) { XXH3_128bits_update(state_.get(), values.data(), values.size() * sizeof(float)); }
  void take(const LayerMatrix& matrix) {
    XXH3_128bits_update(state_.get(), matrix.storage.data(), matrix.storage.size());
    take(matrix.bias);
  }
  void take(const EncoderMatrix& matrix) {
    take(matrix.base);
    if (const auto& limits = matrix.limits)
      take(std::vector<float>{limits->input_min, limits->input_max, limits->output_min, limits->output_max});
  }
  void take(const EncoderNormWeights& norm) {
    take(norm.weight);
    take(norm.bias);
  }
  void take(const ConnectorWeights& connector) {
    take(connector.before);
    take(connector.after);
    take(connector.less);
    take(connector.times);
    for (const LayerMatrix& matrix : connector.dense) take(matrix);
  }
  void take(const ResamplerWeights& resampler) {
    take(resampler.queries);
    for (const EncoderNormWeights* norm : {&resampler.query_norm, &resampler.patch_norm, &resampler.after}) take(*norm);
    for (const LayerMatrix* matrix :
         {&resampler.joined, &resampler.query, &resampler.key, &resampler.value, &resampler.out, &resampler.projection})
      take(*matrix);
  }
  std::array<std::uint64_t, 2> value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.low64, hash.high64};
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

std::array<std::uint64_t, 2> digest_of(const TowerWeights& weights) {
  WeightsDigest digest;
  digest.take(weights.patches);
  digest.take(weights.first);
  digest.take(weights.encoder.positions);
  digest.take(weights.encoder.embedding_norm);
  for (const EncoderLayerWeights& layer : weights.encoder.layers) {
    for (const EncoderNormWeights* norm : {&layer.before_attention, &layer.query_norm, &layer.key_norm, &layer.before_feed_forward,
                                           &layer.after_attention, &layer.after_feed_forward})
      digest.take(*norm);
    for (const EncoderMatrix* matrix : {&layer.query, &layer.key, &layer.value, &layer.out, &layer.gate, &layer.up, &layer.down})
      digest.take(*matrix);
  }
  digest.take(weights.encoder.final_norm);
  digest.take(weights.connector);
  digest.take(weights.reduction);
  digest.take(weights.resampler);
  for (const ConnectorWeights& deep : weights.deep) digest.take(deep);
  digest.take(weights.newline);
  return digest.value();
}

ConnectorWeights load_connector(const ConnectorShape& shape, std::int64_t width, EncoderLoader& loader) {
  ConnectorWeights weights;
  weights.before = loader.norm(shape.before, width);
  weights.after = loader.norm(shape.after, shape.averages ? width : width * shape.side * shape.side);
  if (!shape.less.empty()) weights.less = loader.need(shape.less, {width});
  if (!shape.times.empty()) weights.times = loader.need(shape.times, {width});
  for (const EncoderDense& dense : shape.dense) weights.dense.push_back(loader.linear(dense.linear));
  return weights;
}

ResamplerWeights load_resampler(const ResamplerShape& shape, EncoderLoader& loader) {
  ResamplerWeights weights;
  weights.queries = loader.need(shape.queries, {shape.count, shape.width});
  weights.query_norm = loader.norm(shape.query_norm, shape.width);
  weights.patch_norm = loader.norm(shape.patch_norm, shape.width);
  weights.after = loader.norm(shape.after, shape.width);
  weights.joined = loader.linear(shape.joined);
  weights.query = loader.linear(shape.query);
  weights.key = loader.linear(shape.key);
  weights.value = loader.linear(shape.value);
  weights.out = loader.linear(shape.out);
  weights.projection = loader.linear(shape.projection);
  return weights;
}

// Whether each product reads as much as the one before it gives, and the last gives `outputs`: a file's tensors tell their own sizes.
bool is_chain(const ConnectorShape& connector, std::int64_t width, std::int64_t outputs) {
  std::int64_t given = connector.averages ? width : width * connector.side * connector.side;
  for (const EncoderDense& dense : connector.dense) {
    if (dense.linear.inputs != given) return false;
    given = dense.linear.outputs;
  }
  return given == outputs;
}

bool is_chain(const ResamplerShape& resampler, std::int64_t width) {
  const auto maps = [](const EncoderLinear& linear, std::int64_t inputs, std::int64_t outputs) {
    return linear.inputs == inputs && linear.outputs == outputs;
  };
  const bool joins = resampler.joined ? maps(resampler.joined, width, resampler.width) : width == resampler.width;
  return joins && std::ranges::all_of(std::array{&resampler.query, &resampler.key, &resampler.value, &resampler.out, &resampler.projection},
                                      [&](const EncoderLinear* linear) { return maps(*linear, resampler.width, resampler.width); });
}

bool are_chains(const TowerShape& tower) {
  const std::int64_t width = tower.encoder.width;
  const std::int64_t vectors = tower.vector_width();
  if (tower.resampler) return is_chain(*tower.resampler, width);
  return is_chain(tower.connector, width, vectors) && (!tower.reduction || is_chain(tower.reduction->squares, width, width)) &&
         std::ranges::all_of(tower.deep, [&](const DeepConnector& deep) { return is_chain(deep.connector, width, vectors); });
}

}  // namespace

Result<TowerWeights> load_tower_weights(const TowerShape& shape, const EncoderTensors& tensors, const kernels::KernelTable& table,
                                        kernels::WeightType type) {
  const TowerTensors matrices(tensors, shape.forms);
  auto encoder = load_encoder_weights(shape.encoder, matrices, {}, table, type);
  if (!encoder) return encoder.error();
  TowerWeights weights;
  weights.encoder = std::move(*encoder);
  EncoderLoader loader(matrices, table, type, weights.encoder);
  weights.patches = loader.linear(shape.patches);
  if (!shape.first.empty()) weights.first = loader.need(shape.first, {shape.encoder.width});
  if (shape.resampler) {
    weights.resampler = load_resampler(*shape.resampler, loader);
  } else {
    weights.connector = load_connector(shape.connector, shape.encoder.width, loader);
  }
  if (shape.reduction) weights.reduction = load_connector(shape.reduction->squares, shape.encoder.width, loader);
  for (const DeepConnector& deep : shape.deep) weights.deep.push_back(load_connector(deep.connector, shape.encoder.width, loader));
  if (!shape.newline.empty()) weights.newline = loader.need(shape.newline, {shape.vector_width()});
  if (loader.error) return *loader.error;
  if (!are_chains(shape)) return Error{ErrorCode::kBadFile, "the products behind the tower's layers do not fit each other", {}};
  weights.revision = digest_of(weights);
  return weights;
}

}  // namespace braid::model
