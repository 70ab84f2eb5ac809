// What a model is, as data: a list of layers with their norms, products, positions and the names of their tensors. Made by the
// family's file (families/); weights, workspace and forward pass read nothing else.
#pragma once

#include "model/kv_groups.h"
#include "model/share.h"
#include "model/state_layout.h"
#include "step/visibility.h"

#include <array>
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
  bool bare = false;                      // the tensor of the weights is "<name>"
  std::int32_t rows = 1;                  // of so many that are normalised apart, each has weights of its own: [width, rows]
};

// y = W x + b
struct LinearShape {
  std::string name;  // tensors "<name>.weight" [outputs, inputs] and "<name>.bias" [outputs]
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  Presence bias = Presence::kAbsent;
  Rotation rotation = Rotation::kNever;
  bool exact = false;  // packed as float32, whatever the file has
  // Where several lie in one tensor, one after the other: its outputs, of which these begin at first_output. 0: the tensor is its own.
  std::int64_t stored_outputs = 0;
  std::int64_t first_output = 0;
  bool apart = false;  // of experts: each has a tensor of its own, "<name>.<expert>.weight"

  LinearShape of_expert(std::int32_t index) const;  // with `apart`
  // 0: they are neighbours. Otherwise so many at a time are, each run of them `period` rows after the last one.
  std::int64_t run = 0;
  std::int64_t period = 0;

  std::int64_t stored_row(std::int64_t output) const { return first_output + (run == 0 ? output : output / run * period + output % run); }
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
  bool yarn_whole = true;  // its ramp begins and ends at whole pairs
  // Where tokens lie in pictures: of the pairs, so many turn by the position, the row and the column, one after the other, or, `mixed`, each
  // third one by the row and by the column, as far as there are so many (Wang et al. 2024). None: all turn by the position.
  std::array<std::int32_t, 3> sections{};
  bool mixed = false;
  // Tensors that divide the frequencies [rotated / 2]: `divisors`, or, of sequences of more than original_context tokens, where there are such,
  // `stretched_divisors`.
  std::string divisors = {};
  std::string stretched_divisors = {};
  Presence divided = Presence::kAbsent;
};

inline constexpr std::int32_t kNoRotary = -1;
inline constexpr std::int32_t kNoLayer = -1;

// Attention to latents, which stand for the keys and values of all heads. A head's query has `plain` values, which key_up makes `rank` of, and
// `rotated` ones; a latent has as many. What a query finds is made a value by value_up.
struct LatentShape {
  std::int32_t rank = 0;
  std::int32_t plain = 0;
  std::int32_t rotated = 0;
  std::int32_t value_dim = 0;
  LinearShape query_down = {};  // what queries are made of, or none
  NormShape query_down_norm = {};
  NormShape norm = {};        // of the first `rank` values
  LinearShape key_up = {};    // tensor "<name>.weight" [heads, rank, plain]
  LinearShape value_up = {};  // tensor "<name>.weight" [heads, value_dim, rank]
};

// Grouped-query attention to the sequence's own past. With `latent` all heads share one key, of latents, which is the value as well.
struct AttentionShape {
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  LinearShape query, key, value, output;
  // Or it has none of its own keys and values, and reads those of this layer before it, which has, sees as far, and has heads of one size and
  // number.
  std::int32_t shares = kNoLayer;
  bool keys_are_values = false;  // what the keys' product gives, before norm and rotation, are the values
  LinearShape gate = {};         // what the heads find counts by the sigmoid of this; or none
  std::optional<LatentShape> latent;
  NormShape query_norm, key_norm;  // over as many heads as their width covers: one, or all
  NormShape value_norm = {};       // likewise
  bool norm_after_rotation = false;
  float clip = 0.0F;                // queries, keys and values are held in [-clip, clip] before norms; 0: they are not
  std::int32_t rotary = kNoRotary;  // index into ModelShape::rotary
  std::int32_t window = 0;          // positions that a token sees, its own the last one; 0: all
  bool looks_ahead = true;          // tokens of an image see all of it, where the model's do at all (step::PassToken)
  float scale = 1.0F;               // of scores
  float score_cap = 0.0F;           // scaled scores become cap * tanh(score / cap); 0: they stay
  std::vector<float> slopes;        // [heads], or none: see kernels::AttentionArgs
  std::string sinks;                // tensor "<sinks>.weight" [heads], or empty: likewise
  // Queries at position p are multiplied by 1 + growth * log(1 + p / growth_period), the quotient rounded down; 0: they are not.
  float growth = 0.0F;
  std::int32_t growth_period = 1;

  bool stores() const { return shares == kNoLayer; }
  std::int64_t query_width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const { return std::int64_t{kv_heads} * head_dim; }
};

// A convolution over a token and the few before it, gated on both sides (LFM2): see ShortConvolution.
struct ShortConvolutionShape {
  std::int32_t width = 0;  // channels
  std::int32_t taps = 0;   // tokens that one sees, itself the last; at least 2
  std::string kernel;      // tensors "<kernel>.weight" [taps, width] and "<kernel>.bias" [width]
  Presence bias = Presence::kAbsent;
  LinearShape input;  // to three times the width: B, C and x
  LinearShape output;
};

// Mamba-2: see SelectiveState.
struct SelectiveStateShape {
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t state = 0;   // values that each channel of a head carries on
  std::int32_t groups = 0;  // of heads that share B and C
  std::int32_t taps = 0;    // of the convolution; at least 2
  LinearShape input;        // to gate [inner], x [inner], B and C [groups, state], dt [heads]
  std::string kernel;       // tensors "<kernel>.weight" [taps, convolved] and "<kernel>.bias" [convolved]
  Presence bias = Presence::kAbsent;
  std::string step, decay, skip;  // tensors "<step>.bias", "<decay>", which is negative, and "<skip>" [heads]
  NormShape norm;                 // over [inner], or parts of it; or none
  LinearShape output;

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }
  std::int64_t convolved() const { return inner() + 2 * std::int64_t{groups} * state; }
};

// The gated delta rule: see DeltaRule.
struct DeltaRuleShape {
  std::int32_t heads = 0;
  std::int32_t key_heads = 0;  // each has the queries and keys of heads / key_heads heads: of neighbours, or,
  bool tiled = false;          // where this is set, of every key_heads-th one
  std::int32_t key_dim = 0;
  std::int32_t value_dim = 0;
  std::int32_t taps = 0;    // of the convolution; at least 2
  LinearShape input;        // to queries and keys [key_heads, key_dim] and values [inner]
  LinearShape gate;         // [inner]
  LinearShape beta, decay;  // [heads]
  std::string kernel;       // tensor "<kernel>.weight" [taps, convolved]
  std::string step, rate;   // tensors "<step>.bias" and "<rate>", which is negative, [heads]
  NormShape norm;           // of each head's values
  LinearShape output;

  std::int64_t inner() const { return std::int64_t{heads} * value_dim; }
  std::int64_t convolved() const { return inner() + 2 * std::int64_t{key_heads} * key_dim; }
};

// kGelu is x * Phi(x), kGeluTanh its approximation by tanh, kReluSquared max(x, 0)^2. kXielu: for x > 0 a x^2 + b x, otherwise
// c (exp(min(x, eps)) - 1) - c x + b x (Huang and Schlag 2025). kClampedSwish is always gated: with the gate g cut to at most `limit`
// and up to [-limit, limit], g / (1 + exp(-1.702 g)) * (up + 1) (OpenAI 2025).
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu, kReluSquared, kXielu, kClampedSwish };

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
  float limit = 0.0F;     // of kClampedSwish
  // Before the activation gates become max(0, gate - (mean + cut * deviation)), by the mean and the standard deviation of the row's; or stay.
  std::optional<float> cut = {};
  std::int32_t width = 0;
  LinearShape gate, up, down;
};

// Which experts a row goes through, and with what weights. Experts are numbered from 0; where several are equally good, the first one wins.
struct RouterShape {
  // What scores become before experts are chosen. kSoftmax: of all. kSigmoid: each for itself. kSoftmaxOfChosen: experts are chosen by their
  // scores, and the soft-max is over those. kSparseMixer (Liu et al. 2024): the best one, with its soft-max among those within a share of
  // 2 * jitter of it, then the next one likewise, without the ones chosen before it.
  enum class Scoring { kSoftmax, kSigmoid, kSoftmaxOfChosen, kSparseMixer };
  Scoring scoring = Scoring::kSoftmax;
  LinearShape linear;      // scores, [experts, embedding]
  std::string correction;  // tensor "<correction>.bias" [experts], added where experts are chosen and not in their weights
  Presence corrected = Presence::kAbsent;
  std::int32_t chosen = 1;
  std::int32_t groups = 1;  // of neighbours, all of one size; only experts of the best chosen_groups are chosen from
  std::int32_t chosen_groups = 1;
  std::int32_t group_best = 1;  // a group counts as the sum of its best so many
  bool normalised = false;      // weights are divided by their sum
  float sum_epsilon = 0.0F;     // added to that sum
  float scale = 1.0F;           // of weights, after that
  float jitter = 0.0F;          // of kSparseMixer
  NormShape norm = {};          // it reads the residual stream through this; or what the experts read
  float score_scale = 1.0F;     // of scores, before all else
  std::string weights;          // tensor "<weights>.scale" [experts]: each one's weight is multiplied by it, last; or empty

  std::int32_t experts() const { return static_cast<std::int32_t>(linear.outputs); }
};

// Many networks of one shape, of which each row goes through a few; what they give is added with the router's weights.
struct ExpertsShape {
  RouterShape router;
  FeedForwardShape each;    // tensors "<name>.weight" [experts, outputs, inputs] and "<name>.bias" [experts, outputs]
  std::string shared_gate;  // tensor "<name>.weight" [embedding]: the layer's own network counts by the sigmoid of its product; or empty
  // Or none: experts read what latent_down makes of a row, and latent_up makes the row's width of their sum. The router reads the row itself.
  LinearShape latent_down = {};
  LinearShape latent_up = {};
  // Where experts and the layer's own network are two branches, the experts' norm, which reads the residual stream like the layer's own, and
  // those behind each of the two, before they are added. Or none: they read the same.
  NormShape own_norm = {};
  NormShape post_norm = {};
  NormShape shared_post_norm = {};

  std::int64_t latent() const { return latent_down.outputs; }  // their width; 0: that of the row
};

// What a layer gets of each token beside the stream (Gemma 3n, 2025): x += post_norm(up(act(down(x)) * input)), where the input is made by
// LayerInputsShape.
struct LayerInputShape {
  LinearShape down;  // [width, embedding]
  LinearShape up;    // [embedding, width]
  Activation activation = Activation::kGeluTanh;
  NormShape post_norm;
};

// Of all layers and one token: (norm(projection(x) * projection_scale) + table * table_scale) * scale, x being the token's embedding. A layer's
// are the index-th `width` of them, and each are normalised apart.
struct LayerInputsShape {
  std::int32_t width = 0;
  std::string table;       // tensor "<table>.weight" [vocab, layers * width]
  LinearShape projection;  // [layers * width, embedding]
  NormShape norm;          // [width]
  float table_scale = 1.0F;
  float projection_scale = 1.0F;
  float scale = 1.0F;
};

// A path around attention (Menghani et al. 2024): with n = attention_norm(x), what attention has added to x becomes
// (x + n + norm(up(down(n)))) / sqrt(2).
struct LearnedResidualShape {
  LinearShape down, up;
  NormShape norm;
};

// Several residual streams, of which a layer computes with one (Baykal et al. 2023). Before it all are predicted from all: with the router's
// r = tanh(router(norm(active)) / embedding), stream i becomes s_i + sum_j P(r)_ij s_j. Behind it each is corrected by what the layer has changed
// of the active one: s_i + (1 + C(r)_i) * change, where r is that of the result.
struct StreamMixShape {
  NormShape norm;
  std::string router;   // tensor "<router>.weight" [streams, embedding]
  std::string predict;  // tensor "<predict>.weight" [streams * streams, streams]
  std::string correct;  // tensor "<correct>.weight" [streams, streams]
  std::string scale;    // tensor "<scale>.weight" [embedding]: of the active stream where the layer's input reads it; or empty
};

inline constexpr std::int32_t kMostStreams = 16;

// They begin as the embedding and what `begin` makes of it; their mean, all but the first one's through `end`, is what the output reads. What
// these make gets the length of the first one.
struct StreamsShape {
  std::int32_t count = 0;  // from 2 to kMostStreams
  std::int32_t active = 0;
  LinearShape begin, end;  // tensors "<name>.weight" [count - 1, embedding, embedding]
};

// x += scale * post_norm(mixer(norm(x))), where the mixer is attention or carries a state on, then x += scale *
// post_norm(feed_forward(norm(x))). Any norm may be of kNone; a layer without heads or state has no mixer, one of width 0 no feed-forward.
struct LayerShape {
  bool parallel = false;  // both branches read the same x
  float residual_scale = 1.0F;
  NormShape attention_norm;
  AttentionShape attention;
  std::optional<ShortConvolutionShape> convolution = {};  // in the place of attention, or
  std::optional<SelectiveStateShape> selective = {};      // one of these
  std::optional<DeltaRuleShape> delta = {};
  bool attends_beside_state = false;  // attention is no place that a state takes: both read the same x and are added to it
  bool reads_beside =
      false;  // attention reads rows of twice the stream's width that are given (Workspace::beside), without a norm of its own
  NormShape attention_post_norm;
  NormShape feed_forward_norm;
  FeedForwardShape feed_forward;  // beside experts the network of all rows; its width is 0 where there is none
  std::optional<ExpertsShape> experts;
  NormShape feed_forward_post_norm;
  std::optional<LearnedResidualShape> learned_residual = {};
  std::optional<StreamMixShape> mix = {};     // where the model has streams
  std::optional<LayerInputShape> input = {};  // where it has inputs of layers; it is added to all streams but the first one
  std::string output_scale = {};              // tensor "<output_scale>.weight" [1], which multiplies x in the end; or empty

  bool carries_state() const { return convolution || selective || delta; }
  bool attends() const { return attention.heads > 0 && (!carries_state() || attends_beside_state); }
  bool feeds() const { return feed_forward.width > 0 || experts; }
  StateShape state() const;
  std::int64_t mixed_width() const;  // of what carries a state on, before its output
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
  std::int32_t rows = 0;              // that it has instead of one for each token; 0: it has these
  Presence bias = Presence::kAbsent;  // tensor "<name>.bias" [vocab]
  float scale = 1.0F;                 // of logits, before the cap
  float cap = 0.0F;                   // logits become cap * tanh(logit / cap); 0: they stay
};

// A head that foretells the token behind the next one (multi-token prediction: DeepSeek-V3, GLM-4.5, Qwen3-Next). `layer` reads
// join(token_norm(embedding of the next token), hidden_norm(hidden state)); what it gives goes through `norm` to the model's output.
struct PredictionShape {
  NormShape token_norm, hidden_norm;
  LinearShape join;
  LayerShape layer;
  NormShape norm;
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
  std::optional<LayerInputsShape> layer_inputs = {};
  std::optional<StreamsShape> streams = {};
  std::optional<PredictionShape> prediction = {};
  std::vector<std::string> unused;  // tensors that files may carry although nothing reads them
  // Not from the file, see LoadOptions: positions that any layer may see, the first kSinkTokens among them; 0: no limit.
  std::int32_t kv_limit = 0;

  step::Visibility layer_visibility(std::size_t layer) const;
  step::Visibility visibility() const;  // what some layer sees
  // Of all layers together, which store alike.
  KvLayout kv_layout(std::int32_t block_tokens, kernels::KvType type) const;
  bool stores_alike() const;
  std::int32_t stretch_beyond() const;     // longer sequences have other angles, from their beginning; 0: none have
  bool is_recurrent() const;               // some layer has a state
  std::vector<StateShape> states() const;  // by layer
  KvGroups kv_groups(std::int32_t block_tokens, kernels::KvType type, const Share& share = {}) const;  // by what layers see and store
};

}  // namespace braid::model
