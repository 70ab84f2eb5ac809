// What a model is, as data: a list of layers with their norms, products, positions and the names of their tensors. Made by the
// family's file (families/); weights, workspace and forward pass read nothing else.
#pragma once

#include "model/kv_groups.h"
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
  Presence weight = Presence::kRequired;  // kAbsent: ones
  Presence bias = Presence::kRequired;    // of kLayer only; without it zeros
  std::int32_t rows = 1;                  // of so many that are normalised apart, each has weights of its own: [width, rows]
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
  NormShape query_norm, key_norm;  // over as many heads as their width covers: one, or all
  bool norm_after_rotation = false;
  float clip = 0.0F;                // queries, keys and values are held in [-clip, clip] before norms; 0: they are not
  std::int32_t rotary = kNoRotary;  // index into ModelShape::rotary
  std::int32_t window = 0;          // positions that a token sees, its own the last one; 0: all
  float scale = 1.0F;               // of scores
  float score_cap = 0.0F;           // scaled scores become cap * tanh(score / cap); 0: they stay
  std::vector<float> slopes;        // [heads], or none: see kernels::AttentionArgs
  // Queries at position p are multiplied by 1 + growth * log(1 + p / growth_period), the quotient rounded down; 0: they are not.
  float growth = 0.0F;
  std::int32_t growth_period = 1;

  std::int64_t query_width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const { return std::int64_t{kv_heads} * head_dim; }
};

// kGelu is x * Phi(x), kGeluTanh its approximation by tanh, kReluSquared max(x, 0)^2. kXielu: for x > 0 a x^2 + b x, otherwise
// c (exp(min(x, eps)) - 1) - c x + b x (Huang and Schlag 2025).
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu, kReluSquared, kXielu };

struct XieluParameters {
  float positive = 0.0F;  // a
  float linear = 0.0F;    // b
  float negative = 0.0F;  // c
  float epsilon = 0.0F;
};

// gated: down(act(gate(x)) * up(x)). Otherwise down(act(up(x))).
struct FeedForwardShape {
  Activation activation = Activation::kSilu;
  bool gated = true;
  XieluParameters xielu;  // of kXielu
  std::int32_t width = 0;
  LinearShape gate, up, down;
};

// x += scale * post_norm(attention(norm(x))), then x += scale * post_norm(feed_forward(norm(x))). Any norm may be of kNone.
struct LayerShape {
  bool parallel = false;  // both branches read the same x
  float residual_scale = 1.0F;
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
  NormShape norm = {};    // of all that
};

struct OutputShape {
  NormShape norm;
  std::string name;                   // tensor "<name>.weight" [vocab, embedding]; a file without it takes the embedding's
  Presence bias = Presence::kAbsent;  // tensor "<name>.bias" [vocab]
  float scale = 1.0F;                 // of logits, before the cap
  float cap = 0.0F;                   // logits become cap * tanh(logit / cap); 0: they stay
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
  // Of all layers together, which store alike.
  KvLayout kv_layout(std::int32_t block_tokens, kernels::KvType type) const;
  bool stores_alike() const;
  // By what layers see and store; or all of them in one group, which keeps what any layer sees.
  enum class Grouping { kByLayer, kOne };
  KvGroups kv_groups(std::int32_t block_tokens, kernels::KvType type, Grouping grouping) const;
};

}  // namespace braid::model
