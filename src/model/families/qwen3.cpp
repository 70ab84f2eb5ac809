// Qwen 3: a norm over each head of queries and keys before they are rotated.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {

ModelShape describe_qwen3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    AttentionShape& attention = model.layers[i].attention;
    const auto head_norm = [&](std::string_view part) {
      return NormShape{.kind = NormShape::Kind::kRms,
                       .name = layer_tensor(static_cast<std::int32_t>(i), part),
                       .width = attention.head_dim,
                       .epsilon = model.output.norm.epsilon};
    };
    attention.query_norm = head_norm("attn_q_norm");
    attention.key_norm = head_norm("attn_k_norm");
    for (LinearShape* linear : {&attention.query, &attention.key, &attention.value, &attention.output}) linear->bias = Presence::kOptional;
  }
  return model;
}

}  // namespace braid::model
