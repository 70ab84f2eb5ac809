// What a model is, as data: a list of layers with their norms, products, positions and the names of their tensors. Made by the
// family's file (families/); weights, workspace and forward pass read nothing else.
#pragma once

#include "model/kv_layout.h"
#include "step/visibility.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::model {

// Leading tokens that a limited context keeps: a softmax needs a place for the weight it has no use for (Xiao et al. 2023, "Efficient
// streaming language models with attention sinks").
inline constexpr std::int32_t kSinkTokens = 4;

// Of a tensor in the file; one that is kAbsent and there all the same is refused.
enum class Presence { kAbsent, kOptional, kRequired };

// Whether a matrix may be packed rotated.
enum class Rotation { kNever, kAllowed };

// kRms: x / sqrt(mean(x^2) + epsilon) * weight. kLayer: (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
struct NormShape {
  enum class Kind { kNone, kRms, kLayer };
  Kind kind = Kind::kNone;
  std::string name;  // tensors "<name>.weight" and, kLayer, "<name>.bias" [width]
  std::int32_t width = 0;
  float epsilon = 0.0F;
};

// y = W x + b
struct LinearShape {
  std::string name;  // tensors "<name>.weight" [outputs, inputs] and "<name>.bias" [outputs]
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  Presence bias = Presence::kAbsent;
  Rotation rotation = Rotation::kNever;
  // Where several lie in one tensor, one after the other: its outputs, of which these begin at first_output. 0: the tensor is its own.
  std::int64_t stored_outputs = 0;
  std::int64_t first_output = 0;
};

enum class RopeScaling { kNone, kLinear, kYarn, kLongrope };

// How positions become angles; rope.h turns it into frequencies.
struct RopeParameters {
  double base = 10000.0;
  std::int32_t rotated = 0;  // leading values of a head that rotate; even
  bool interleaved = false;  // rotated pairs are (2i, 2i + 1); otherwise (i, i + rotated / 2)
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                // how far the context was stretched
  std::int32_t original_context = 0;  // the context before stretching
  double attention_factor = 1.0;      // multiplies cos and sin
  double yarn_extrapolation = 1.0;    // yarn: share of the per-dimension ramp
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
  // Tensors that divide the frequencies [rotated / 2]: `divisors`, or, when the context that is served exceeds original_context and there
  // are such, `stretched_divisors`.
  std::string divisors = {};
  std::string stretched_divisors = {};
  Presence divided = Presence::kAbsent;
};

inline constexpr std::int32_t kNoRotary = -1;

// Grouped-query attention to the sequence's own past.
struct AttentionShape {
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  LinearShape query, key, value, output;
  NormShape query_norm, key_norm;   // over each head, before rotation
  std::int32_t rotary = kNoRotary;  // index into ModelShape::rotary
  std::int32_t window = 0;          // positions that a token sees, its own the last one; 0: all
  float scale = 1.0F;               // of scores
  float score_cap = 0.0F;           // scaled scores become cap * tanh(score / cap); 0: they stay

  std::int64_t query_width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const { return std::int64_t{kv_heads} * head_dim; }
};

// kSwiGlu: down(silu(gate(x)) * up(x)). kGeGlu: down(gelu(gate(x)) * up(x)). kGelu: down(gelu(up(x))), without a gate.
struct FeedForwardShape {
  enum class Kind { kSwiGlu, kGeGlu, kGelu };
  Kind kind = Kind::kSwiGlu;
  std::int32_t width = 0;
  LinearShape gate, up, down;

  bool gated() const { return kind != Kind::kGelu; }
};

// x += post_norm(attention(norm(x))), then x += post_norm(feed_forward(norm(x))). Either post-norm may be of kNone.
struct LayerShape {
  NormShape attention_norm;
  AttentionShape attention;
  NormShape attention_post_norm;
  NormShape feed_forward_norm;
  FeedForwardShape feed_forward;
  NormShape feed_forward_post_norm;
};

struct EmbeddingShape {
  std::string name;       // tensor "<name>.weight" [vocab, embedding]
  float scale = 1.0F;     // of its rows
  std::string positions;  // tensor "<positions>.weight" [context_length, embedding], added; or empty
};

struct OutputShape {
  NormShape norm;
  std::string name;  // tensor "<name>.weight" [vocab, embedding]; a file without it takes the embedding's
  float cap = 0.0F;  // logits become cap * tanh(logit / cap); 0: they stay
};

struct ModelShape {
  std::string architecture;
  std::int32_t context_length = 0;
  std::int32_t embedding = 0;  // width of the residual stream
  std::int32_t vocab = 0;
  EmbeddingShape input;
  std::vector<RopeParameters> rotary;
  std::vector<LayerShape> layers;
  OutputShape output;
  std::vector<std::string> unused;  // tensors that files may carry although nothing reads them
  // Not from the file, see LoadOptions: positions that any layer may see, the first kSinkTokens among them; 0: no limit.
  std::int32_t kv_limit = 0;

  step::Visibility layer_visibility(std::size_t layer) const;
  step::Visibility visibility() const;  // what some layer sees
  KvLayout kv_layout(std::int32_t block_tokens, kernels::KvType type) const;
};

}  // namespace braid::model
