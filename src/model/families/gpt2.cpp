// GPT-2 (Radford et al. 2019): learned positions, layer norms, plain feed-forward networks of GELU, biases everywhere, and queries, keys and
// values in one tensor.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"

#include <utility>

namespace braid::model {

ModelShape describe_gpt2(GgufKeys& keys) {
  const DecoderSize size = read_size(keys);
  const auto epsilon = static_cast<float>(keys.number("attention.layer_norm_epsilon", std::nullopt, 1e-12, 1.0));
  const auto norm = [&](std::string name) {
    return NormShape{.kind = NormShape::Kind::kLayer, .name = std::move(name), .width = size.embedding, .epsilon = epsilon};
  };
  ModelShape model = decoder_ends(size);
  model.input.positions = "position_embd";
  model.output.norm = norm(model.output.norm.name);
  for (std::int32_t i = 0; i < size.layers; ++i) {
    const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
      return LinearShape{
          .name = layer_tensor(i, part), .inputs = inputs, .outputs = outputs, .bias = Presence::kRequired, .rotation = Rotation::kAllowed};
    };
    LayerShape layer;
    layer.attention_norm = norm(layer_tensor(i, "attn_norm"));
    layer.attention = decoder_attention(size, i);
    AttentionShape& attention = layer.attention;
    std::int64_t first = 0;
    for (LinearShape* part : {&attention.query, &attention.key, &attention.value}) {
      part->name = layer_tensor(i, "attn_qkv");
      part->bias = Presence::kRequired;
      part->stored_outputs = attention.query_width() + 2 * attention.kv_width();
      part->first_output = std::exchange(first, first + part->outputs);
    }
    attention.output.bias = Presence::kRequired;
    layer.feed_forward_norm = norm(layer_tensor(i, "ffn_norm"));
    layer.feed_forward.kind = FeedForwardShape::Kind::kGelu;
    layer.feed_forward.width = size.feed_forward;
    layer.feed_forward.up = linear("ffn_up", size.embedding, size.feed_forward);
    layer.feed_forward.down = linear("ffn_down", size.feed_forward, size.embedding);
    model.layers.push_back(std::move(layer));
  }
  return model;
}

}  // namespace braid::model
