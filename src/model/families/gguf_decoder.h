// What the GGUF files of decoders have in common: their keys, the names of their tensors, and a plain model that families bend.
#pragma once

#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::model {

struct DecoderSize {
  std::int32_t context_length = 0;
  std::int32_t layers = 0;
  std::int32_t embedding = 0;
  std::int32_t feed_forward = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t vocab = 0;
};

// Refuses also what no family here computes: mixtures of experts, attention to what comes later.
DecoderSize read_size(GgufKeys& keys);

RopeParameters read_rope(GgufKeys& keys, const DecoderSize& size);

// "blk.<layer>.<part>"
std::string layer_tensor(std::int32_t layer, std::string_view part);

// Embedding and output as every file names them, and no layers yet. The output's norm has no kind.
ModelShape decoder_ends(const DecoderSize& size);

// Attention of layer `index` with its four products apart, without biases, windows or positions.
AttentionShape decoder_attention(const DecoderSize& size, std::int32_t index);

// A model of the Llama kind (Touvron et al. 2023): root mean square norms before attention and feed-forward, rotated halves, SwiGLU, and no
// biases or windows.
ModelShape rms_decoder(GgufKeys& keys);

// Windows and the cap of scores where the file gives them, for files that llama.cpp may have saved.
void read_windows_and_cap(GgufKeys& keys, ModelShape& model);

// Windows of `window` positions in all layers; of `period` layers the last one has none, unless period is 0.
void set_windows(ModelShape& model, std::int32_t window, std::int32_t period);

}  // namespace braid::model
