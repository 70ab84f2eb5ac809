#include "model/adapters/matrices.h"

#include <utility>

namespace braid::model {
namespace {

class Collector {
 public:
  void add(const LinearShape& shape, const LinearWeights& linear, std::int32_t expert = -1) {
    if (linear.matrix.inputs == 0) return;
    all_.push_back({.shape = shape, .expert = expert, .packed = &linear.matrix, .bias = &linear.bias});
  }

  void add_feed_forward(const FeedForwardShape& shape, const FeedForwardWeights& weights) {
    if (shape.width == 0) return;
    if (shape.gated) add(shape.gate, weights.gate);
    add(shape.up, weights.up);
    add(shape.down, weights.down);
  }

  void add_experts(const ExpertsShape& shape, const ExpertsWeights& weights) {
    add(shape.router.linear, weights.router);
    add(shape.latent_down, weights.latent_down);
    add(shape.latent_up, weights.latent_up);
    const auto add_each = [&](const LinearShape& linear, LinearWeights FeedForwardWeights::*part) {
      for (std::size_t i = 0; i < weights.each.size(); ++i) {
        const auto index = static_cast<std::int32_t>(i);
        linear.apart ? add(linear.of_expert(index), weights.each[i].*part) : add(linear, weights.each[i].*part, index);
      }
    };
    if (shape.each.gated) add_each(shape.each.gate, &FeedForwardWeights::gate);
    add_each(shape.each.up, &FeedForwardWeights::up);
    add_each(shape.each.down, &FeedForwardWeights::down);
  }

  void add_heads(const LinearShape& shape, const std::vector<LinearWeights>& heads) {
    for (std::size_t i = 0; i < heads.size(); ++i) add(shape, heads[i], static_cast<std::int32_t>(i));
  }

  void add_attention(const AttentionShape& shape, const AttentionWeights& weights) {
    add(shape.query, weights.query);
    add(shape.key, weights.key);
    add(shape.output, weights.output);
    if (shape.gate.outputs > 0) add(shape.gate, weights.gate);
    if (shape.latent) {
      if (shape.latent->query_down.outputs > 0) add(shape.latent->query_down, weights.latent.query_down);
      add_heads(shape.latent->key_up, weights.latent.key_up);
      add_heads(shape.latent->value_up, weights.latent.value_up);
    } else {
      add(shape.value, weights.value);
    }
  }

  void add_layer(const LayerShape& shape, const LayerWeights& layer) {
    if (shape.convolution) {
      add(shape.convolution->input, layer.convolution.input);
      add(shape.convolution->output, layer.convolution.output);
    }
    if (shape.selective) {
      add(shape.selective->input, layer.selective.input);
      add(shape.selective->output, layer.selective.output);
    }
    if (shape.delta) {
      const DeltaRuleShape& delta = *shape.delta;
      add(delta.input, layer.delta.input);
      add(delta.gate, layer.delta.gate);
      add(delta.beta, layer.delta.beta);
      add(delta.decay, layer.delta.decay);
      add(delta.output, layer.delta.output);
    }
    if (shape.attends()) add_attention(shape.attention, layer.attention);
    add_feed_forward(shape.feed_forward, layer.feed_forward);
    if (shape.experts) add_experts(*shape.experts, layer.experts);
    if (shape.learned_residual) {
      add(shape.learned_residual->down, layer.learned_residual.down);
      add(shape.learned_residual->up, layer.learned_residual.up);
    }
    if (shape.input) {
      add(shape.input->down, layer.input.down);
      add(shape.input->up, layer.input.up);
    }
  }

  void add_table(ModelMatrix::Role role, const std::string& name, const ModelShape& model, const kernels::PackedMatrix& packed,
                 const std::vector<float>* bias) {
    all_.push_back(
        {.role = role, .shape = {.name = name, .inputs = model.embedding, .outputs = model.vocab}, .packed = &packed, .bias = bias});
  }

  std::vector<ModelMatrix> take() { return std::move(all_); }

 private:
  std::vector<ModelMatrix> all_;
};

class NormCollector {
 public:
  void add(const NormShape& shape, const NormWeights& weights) {
    if (shape.kind != NormShape::Kind::kNone && weights.number > 0) all_.push_back({&shape, &weights});
  }

  void add_layer(const LayerShape& shape, const LayerWeights& layer) {
    add(shape.attention_norm, layer.attention_norm);
    add(shape.attention.query_norm, layer.attention.query_norm);
    add(shape.attention.key_norm, layer.attention.key_norm);
    add(shape.attention.value_norm, layer.attention.value_norm);
    if (shape.attention.latent) {
      add(shape.attention.latent->query_down_norm, layer.attention.latent.query_down_norm);
      add(shape.attention.latent->norm, layer.attention.latent.norm);
    }
    if (shape.selective) add(shape.selective->norm, layer.selective.norm);
    if (shape.delta) add(shape.delta->norm, layer.delta.norm);
    add(shape.attention_post_norm, layer.attention_post_norm);
    add(shape.feed_forward_norm, layer.feed_forward_norm);
    if (shape.experts) {
      add(shape.experts->router.norm, layer.experts.router_norm);
      add(shape.experts->own_norm, layer.experts.own_norm);
      add(shape.experts->post_norm, layer.experts.post_norm);
      add(shape.experts->shared_post_norm, layer.experts.shared_post_norm);
    }
    add(shape.feed_forward_post_norm, layer.feed_forward_post_norm);
    if (shape.learned_residual) add(shape.learned_residual->norm, layer.learned_residual.norm);
    if (shape.mix) add(shape.mix->norm, layer.mix.norm);
    if (shape.input) add(shape.input->post_norm, layer.input.post_norm);
  }

  std::vector<ModelNorm> take() { return std::move(all_); }

 private:
  std::vector<ModelNorm> all_;
};

}  // namespace

std::vector<ModelNorm> norms_of(const ModelShape& model, const Weights& weights) {
  NormCollector all;
  all.add(model.input.norm, weights.embedding_norm);
  if (model.layer_inputs) all.add(model.layer_inputs->norm, weights.layer_inputs.norm);
  for (std::size_t i = 0; i < model.layers.size(); ++i) all.add_layer(model.layers[i], weights.layers[i]);
  all.add(model.output.norm, weights.output_norm);
  return all.take();
}

std::vector<ModelMatrix> matrices_of(const ModelShape& model, const Weights& weights) {
  Collector all;
  for (std::size_t i = 0; i < model.layers.size(); ++i) all.add_layer(model.layers[i], weights.layers[i]);
  all.add_table(ModelMatrix::Role::kEmbedding, model.input.name, model, weights.embedding, nullptr);
  all.add_table(ModelMatrix::Role::kOutput, model.output.name, model, weights.output, &weights.output_bias);
  return all.take();
}

}  // namespace braid::model
