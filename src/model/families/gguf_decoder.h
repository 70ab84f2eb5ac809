// What the GGUF files of decoders have in common: their keys, the names of their tensors, and a plain model that families bend.
#pragma once

#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

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

// What models without attention have, too: no heads and no width of networks.
DecoderSize read_ends(GgufKeys& keys);

// Refuses also what no family here computes: attention to what comes later.
DecoderSize read_size(GgufKeys& keys);

// The same for each layer, whose heads and networks may differ.
std::vector<DecoderSize> read_layer_sizes(GgufKeys& keys);

RopeParameters read_rope(GgufKeys& keys, const DecoderSize& size);

// "blk.<layer>.<part>"
std::string layer_tensor(std::int32_t layer, std::string_view part);

// Embedding and output as every file names them, and no layers yet. The output's norm has no kind.
ModelShape decoder_ends(const DecoderSize& size);

// SwiGLU of layer `index`, gate and up joined where the file has them so, without biases.
FeedForwardShape gated_feed_forward(GgufKeys& keys, const DecoderSize& size, std::int32_t index);

// Attention of layer `index` with its four products apart, or three of them joined where the file has them so, without biases, windows or
// positions.
AttentionShape decoder_attention(GgufKeys& keys, const DecoderSize& size, std::int32_t index);

// A model of the Llama kind (Touvron et al. 2023): root mean square norms before attention and feed-forward, rotated halves, SwiGLU, and no
// biases or windows.
ModelShape rms_decoder(GgufKeys& keys);
// Of an RMS norm's epsilon, which some converters take for that of a layer norm.
std::string_view rms_epsilon_key(const GgufKeys& keys);

// The same with layer norms with biases.
ModelShape layer_norm_decoder(GgufKeys& keys);

// LongRoPE where the file has its divisors, which is all that says it in some.
void read_long_rope(GgufKeys& keys, ModelShape& model);

// Windows where the file gives them, or else as the fallbacks say: of `period` layers the last one has none, unless period is 0.
void read_windows(GgufKeys& keys, ModelShape& model, std::int32_t fallback = 0, std::int32_t fallback_period = 0);

// Windows and the cap of scores where the file gives them, for files that llama.cpp may have saved.
void read_windows_and_cap(GgufKeys& keys, ModelShape& model);

// Norms of queries and keys, "attn_q_norm" and "attn_k_norm", of this kind; over each head, or over all of them together.
void add_query_norms(ModelShape& model, NormShape::Kind kind, bool whole = false);

// Norms behind both branches.
void add_post_norms(ModelShape& model, std::string_view attention, std::string_view feed_forward);
// None before them.
void drop_pre_norms(ModelShape& model);

enum class Parts { kQueryKeyValue, kAttention, kFeedForward };
void set_biases(ModelShape& model, Parts parts, Presence bias);

// Which of these a file's "feed_forward.activation" names; the first one is what files without it mean.
void read_activation(GgufKeys& keys, ModelShape& model, std::initializer_list<Activation> known);

// No gate.
void make_plain(ModelShape& model);

// No rotation, but scores that fall with distance (ALiBi), faster in the first heads: by at most 2^(-most / heads) for each position.
void add_slopes(ModelShape& model, double most);

// Layers without a window know no positions, where others have one.
void drop_rotation_of_full_layers(ModelShape& model);

}  // namespace braid::model
