#include "model/families/gguf_decoder.h"

#include "model/deterministic_math.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace braid::model {
namespace {

// The vocabulary is the embedding's number of rows; what else names its size must agree.
std::int32_t read_vocab(GgufKeys& keys) {
  const files::GgufTensor* embedding = keys.file().tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    keys.fail(ErrorCode::kBadFile,
              embedding == nullptr ? "the tensor token_embd.weight is missing" : "the tensor token_embd.weight is not a matrix");
    return 1;
  }
  const std::int64_t rows = embedding->shape[1];
  if (rows < 1 || rows > static_cast<std::int64_t>(kMaxDimension))
    keys.fail(ErrorCode::kBadFile, fmt::format("token_embd.weight has {} rows, expected 1 to {}", rows, kMaxDimension));
  const files::GgufValue* tokens = keys.file().find("tokenizer.ggml.tokens");
  if (const auto* array = tokens != nullptr ? std::get_if<files::GgufArray>(tokens) : nullptr) {
    const auto count = std::visit([](const auto& items) { return static_cast<std::int64_t>(items.size()); }, array->items);
    if (count > rows)
      keys.fail(ErrorCode::kBadFile,
                fmt::format("tokenizer.ggml.tokens has {} entries, expected at most the {} rows of token_embd.weight", count, rows));
  }
  return keys.error ? 1 : static_cast<std::int32_t>(rows);
}

void check_heads(GgufKeys& keys, const DecoderSize& size) {
  if (size.heads % size.kv_heads != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a divisor of {} = {}", keys.full("attention.head_count_kv"),
                                               size.kv_heads, keys.full("attention.head_count"), size.heads));
  if (!keys.has("attention.key_length") && size.embedding % size.heads != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a divisor of {} = {}", keys.full("attention.head_count"), size.heads,
                                               keys.full("embedding_length"), size.embedding));
  if (keys.has("attention.kv_lora_rank")) return;  // values are a part of latents
  const auto values = keys.size("attention.value_length", static_cast<std::uint64_t>(size.head_dim), kMaxHeadDim);
  if (values != size.head_dim)
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is {}, expected {} as {}", keys.full("attention.value_length"), values,
                                                   size.head_dim, keys.full("attention.key_length")));
}

std::optional<RopeScaling> parse_scaling(std::string_view name) {
  if (name == "none") return RopeScaling::kNone;
  if (name == "linear") return RopeScaling::kLinear;
  if (name == "yarn") return RopeScaling::kYarn;
  if (name == "longrope") return RopeScaling::kLongrope;
  return std::nullopt;
}

void read_scaling(GgufKeys& keys, const DecoderSize& size, RopeParameters& rope) {
  // As llama.cpp reads them: this one counts without scaling, too, a factor without a type is linear, and files of 2023 call it
  // rope.scale_linear.
  rope.attention_factor = keys.number("rope.scaling.attn_factor", 1.0, 1e-3, 1e3);
  const bool has_factor = keys.has("rope.scaling.factor");
  const std::string name = keys.text("rope.scaling.type", has_factor || keys.has("rope.scale_linear") ? "linear" : "none");
  const auto scaling = parse_scaling(name);
  if (!scaling)
    keys.fail(ErrorCode::kUnsupported,
              fmt::format("{} is \"{}\", expected none, linear, yarn or longrope", keys.full("rope.scaling.type"), name));
  rope.scaling = scaling.value_or(RopeScaling::kNone);
  if (rope.scaling == RopeScaling::kNone) return;

  rope.factor = keys.number_unless(0.0, has_factor ? "rope.scaling.factor" : "rope.scale_linear", 1.0, 1e-3, 1e6);
  rope.original_context = keys.size("rope.scaling.original_context_length", static_cast<std::uint64_t>(size.context_length), kMaxContext);
  // yarn_attn_factor, which converters write for factors of two meanings, is not read: llama.cpp computes yarn's from `factor` alone.
  rope.yarn_extrapolation = keys.number_unless(-1.0, "rope.scaling.yarn_ext_factor", 1.0, 0.0, 1.0);
  rope.yarn_beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32.0, 1e-3, 1e6);
  rope.yarn_beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1.0, 1e-3, 1e6);
  rope.yarn_whole = keys.flag("rope.scaling.yarn_truncate", true);
}

}  // namespace

DecoderSize read_ends(GgufKeys& keys) {
  DecoderSize size;
  size.context_length = keys.size("context_length", std::nullopt, kMaxContext);
  size.layers = keys.size("block_count", std::nullopt, kMaxLayers);
  size.embedding = keys.size("embedding_length", std::nullopt);
  size.vocab = read_vocab(keys);
  return size;
}

DecoderSize read_size(GgufKeys& keys) {
  DecoderSize size = read_ends(keys);
  size.feed_forward = keys.size("feed_forward_length", std::nullopt);
  size.heads = keys.size("attention.head_count", std::nullopt, kMaxHeads);
  size.kv_heads = keys.size("attention.head_count_kv", static_cast<std::uint64_t>(size.heads), kMaxHeads);
  size.head_dim = keys.size("attention.key_length", static_cast<std::uint64_t>(std::max(1, size.embedding / size.heads)), kMaxHeadDim);
  if (!keys.flag("attention.causal", true))  // of embedding models, whose tokens see those after them, too
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is false, which this build cannot compute", keys.full("attention.causal")));
  check_heads(keys, size);
  return size;
}

namespace {

// One for each layer; zeros of arrays, of layers that have none of it, become what the others have.
std::vector<std::int32_t> positive_sizes(GgufKeys& keys, std::string_view key, const DecoderSize& size,
                                         std::optional<std::uint64_t> fallback, std::uint64_t most) {
  std::vector<std::int32_t> sizes = keys.sizes(key, static_cast<std::size_t>(size.layers), fallback, most);
  const auto first = std::ranges::find_if(sizes, [](std::int32_t value) { return value > 0; });
  if (first == sizes.end()) keys.fail(ErrorCode::kBadFile, fmt::format("{} is no positive number for any layer", keys.full(key)));
  std::ranges::replace(sizes, 0, first == sizes.end() ? 1 : *first);
  return sizes;
}

}  // namespace

std::vector<DecoderSize> read_layer_sizes(GgufKeys& keys) {
  DecoderSize size = read_ends(keys);
  const std::vector<std::int32_t> widths = positive_sizes(keys, "feed_forward_length", size, std::nullopt, kMaxDimension);
  const std::vector<std::int32_t> heads = positive_sizes(keys, "attention.head_count", size, std::nullopt, kMaxHeads);
  const auto fallback = static_cast<std::uint64_t>(heads.front());
  const std::vector<std::int32_t> kv_heads = positive_sizes(keys, "attention.head_count_kv", size, fallback, kMaxHeads);
  size.head_dim = keys.size("attention.key_length", static_cast<std::uint64_t>(std::max(1, size.embedding / heads.front())), kMaxHeadDim);
  if (!keys.flag("attention.causal", true))  // of embedding models, whose tokens see those after them, too
    keys.fail(ErrorCode::kUnsupported, fmt::format("{} is false, which this build cannot compute", keys.full("attention.causal")));
  std::vector<DecoderSize> all(static_cast<std::size_t>(size.layers), size);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].feed_forward = widths[i];
    all[i].heads = heads[i];
    all[i].kv_heads = keys.has("attention.head_count_kv") ? kv_heads[i] : heads[i];
    check_heads(keys, all[i]);
  }
  return all;
}

RopeParameters read_rope(GgufKeys& keys, const DecoderSize& size) {
  RopeParameters rope;
  rope.base = keys.number("rope.freq_base", 10000.0, 2.0, 1e12);
  rope.rotated = keys.size("rope.dimension_count", static_cast<std::uint64_t>(size.head_dim));
  if (rope.rotated > size.head_dim || rope.rotated % 2 != 0)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected an even number up to the head size {}",
                                               keys.full("rope.dimension_count"), rope.rotated, size.head_dim));
  read_scaling(keys, size, rope);
  const bool longrope = rope.scaling == RopeScaling::kLongrope;
  rope.divisors = longrope ? "rope_factors_short.weight" : "rope_freqs.weight";  // the latter are Llama 3's
  if (longrope) rope.stretched_divisors = "rope_factors_long.weight";
  rope.divided = longrope ? Presence::kRequired : Presence::kOptional;
  return rope;
}

std::string layer_tensor(std::int32_t layer, std::string_view part) { return fmt::format("blk.{}.{}", layer, part); }

ModelShape decoder_ends(const DecoderSize& size) {
  ModelShape model;
  model.context_length = size.context_length;
  model.embedding = size.embedding;
  model.vocab = size.vocab;
  model.input.name = "token_embd";
  model.output.norm = {.kind = NormShape::Kind::kNone, .name = "output_norm", .width = size.embedding, .epsilon = 0.0F};
  model.output.name = "output";
  return model;
}

AttentionShape decoder_attention(GgufKeys& keys, const DecoderSize& size, std::int32_t index) {
  AttentionShape attention;
  attention.heads = size.heads;
  attention.kv_heads = size.kv_heads;
  attention.head_dim = size.head_dim;
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs};
  };
  attention.query = linear("attn_q", size.embedding, attention.query_width());
  attention.key = linear("attn_k", size.embedding, attention.kv_width());
  attention.value = linear("attn_v", size.embedding, attention.kv_width());
  attention.output = linear("attn_output", attention.query_width(), size.embedding);
  attention.scale = 1.0F / std::sqrt(static_cast<float>(size.head_dim));
  if (keys.file().tensor(layer_tensor(index, "attn_qkv.weight")) == nullptr) return attention;
  std::int64_t first = 0;
  for (LinearShape* part : {&attention.query, &attention.key, &attention.value}) {
    part->name = layer_tensor(index, "attn_qkv");
    part->stored_outputs = attention.query_width() + 2 * attention.kv_width();
    part->first_output = std::exchange(first, first + part->outputs);
  }
  return attention;
}

FeedForwardShape gated_feed_forward(GgufKeys& keys, const DecoderSize& size, std::int32_t index) {
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{
        .name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs, .bias = Presence::kAbsent, .rotation = Rotation::kAllowed};
  };
  FeedForwardShape shape;
  shape.width = size.feed_forward;
  shape.gate = linear("ffn_gate", size.embedding, size.feed_forward);
  shape.up = linear("ffn_up", size.embedding, size.feed_forward);
  shape.down = linear("ffn_down", size.feed_forward, size.embedding);
  const files::GgufTensor* up = keys.file().tensor(layer_tensor(index, "ffn_up.weight"));
  const bool joined = up != nullptr && up->shape.size() == 2 && up->shape[1] == 2 * std::int64_t{size.feed_forward};
  if (joined) {  // the gate's rows, then those of up
    shape.gate.name = shape.up.name;
    shape.gate.stored_outputs = shape.up.stored_outputs = up->shape[1];
    shape.up.first_output = size.feed_forward;
  }
  return shape;
}

namespace {

ModelShape decoder(GgufKeys& keys, NormShape::Kind kind, std::string_view epsilon_key) {
  const std::vector<DecoderSize> sizes = read_layer_sizes(keys);
  const DecoderSize& size = sizes.front();
  const auto epsilon = static_cast<float>(keys.number(epsilon_key, std::nullopt, 1e-12, 1.0));
  ModelShape model = decoder_ends(size);
  model.output.norm.kind = kind;
  model.output.norm.epsilon = epsilon;
  model.rotary.push_back(read_rope(keys, size));
  for (std::int32_t i = 0; i < size.layers; ++i) {
    const auto norm = [&](std::string_view part) {
      return NormShape{.kind = kind, .name = layer_tensor(i, part), .width = size.embedding, .epsilon = epsilon};
    };
    LayerShape layer;
    layer.attention_norm = norm("attn_norm");
    layer.attention = decoder_attention(keys, sizes[static_cast<std::size_t>(i)], i);
    layer.feed_forward_norm = norm("ffn_norm");
    layer.feed_forward = gated_feed_forward(keys, sizes[static_cast<std::size_t>(i)], i);
    layer.attention.rotary = 0;
    model.layers.push_back(std::move(layer));
    model.unused.push_back(layer_tensor(i, "attn_rot_embd.weight"));  // files of 2023 carry this table
  }
  return model;
}

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kRelu:
      return "relu";
    case Activation::kReluSquared:
      return "relu2";
    case Activation::kXielu:
      return "xielu";
    case Activation::kClampedSwish:
      return "clamped_swish";
  }
  return "";
}

}  // namespace

std::string_view rms_epsilon_key(const GgufKeys& keys) {
  constexpr std::string_view kRms = "attention.layer_norm_rms_epsilon";
  constexpr std::string_view kAny = "attention.layer_norm_epsilon";
  return keys.has(kRms) || !keys.has(kAny) ? kRms : kAny;
}

ModelShape rms_decoder(GgufKeys& keys) { return decoder(keys, NormShape::Kind::kRms, rms_epsilon_key(keys)); }

ModelShape layer_norm_decoder(GgufKeys& keys) { return decoder(keys, NormShape::Kind::kLayer, "attention.layer_norm_epsilon"); }

void read_long_rope(GgufKeys& keys, ModelShape& model) {
  if (keys.file().tensor("rope_factors_long.weight") == nullptr) return;
  RopeParameters& rope = model.rotary.front();
  rope.divisors = "rope_factors_short.weight";
  rope.stretched_divisors = "rope_factors_long.weight";
  rope.divided = Presence::kRequired;
  rope.original_context = keys.size("rope.scaling.original_context_length", static_cast<std::uint64_t>(model.context_length), kMaxContext);
}

void read_windows(GgufKeys& keys, ModelShape& model, std::int32_t fallback, std::int32_t fallback_period) {
  const std::int32_t window = keys.count("attention.sliding_window", kMaxContext, static_cast<std::uint64_t>(fallback));
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  std::vector<bool> windowed = keys.flags(kPattern, model.layers.size());
  if (windowed.empty()) {
    const auto period = static_cast<std::size_t>(keys.count(kPattern, kMaxLayers, static_cast<std::uint64_t>(fallback_period)));
    for (std::size_t i = 0; i < model.layers.size(); ++i) windowed.push_back(period == 0 || (i + 1) % period != 0);
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (windowed[i]) model.layers[i].attention.window = window;
}

void read_windows_and_cap(GgufKeys& keys, ModelShape& model) {
  read_windows(keys, model);
  // llama.cpp saves caps of 50 for scores and 30 for final logits, which these architectures do not have, into every model, and applies
  // neither.
  if (keys.has("final_logit_softcapping")) return;
  const auto cap = static_cast<float>(keys.number("attn_logit_softcapping", 0.0, 0.0, 1e6));
  for (LayerShape& layer : model.layers) layer.attention.score_cap = cap;
}

void add_query_norms(ModelShape& model, NormShape::Kind kind, bool whole) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    AttentionShape& attention = model.layers[i].attention;
    const auto norm = [&](std::string_view part, std::int32_t heads) {
      return NormShape{.kind = kind,
                       .name = layer_tensor(static_cast<std::int32_t>(i), part),
                       .width = attention.head_dim * (whole ? heads : 1),
                       .epsilon = model.output.norm.epsilon,
                       .bias = Presence::kAbsent};
    };
    attention.query_norm = norm("attn_q_norm", attention.heads);
    attention.key_norm = norm("attn_k_norm", attention.kv_heads);
  }
}

void add_post_norms(ModelShape& model, std::string_view attention, std::string_view feed_forward) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerShape& layer = model.layers[i];
    layer.attention_post_norm = layer.attention_norm;
    layer.attention_post_norm.name = layer_tensor(static_cast<std::int32_t>(i), attention);
    layer.feed_forward_post_norm = layer.feed_forward_norm;
    layer.feed_forward_post_norm.name = layer_tensor(static_cast<std::int32_t>(i), feed_forward);
  }
}

void drop_pre_norms(ModelShape& model) {
  for (LayerShape& layer : model.layers) layer.attention_norm.kind = layer.feed_forward_norm.kind = NormShape::Kind::kNone;
}

void set_biases(ModelShape& model, Parts parts, Presence bias) {
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    FeedForwardShape& feed_forward = layer.feed_forward;
    if (parts == Parts::kFeedForward) {
      feed_forward.gate.bias = feed_forward.up.bias = feed_forward.down.bias = bias;
      continue;
    }
    attention.query.bias = attention.key.bias = attention.value.bias = bias;
    if (parts == Parts::kAttention) attention.output.bias = bias;
  }
}

void read_activation(GgufKeys& keys, ModelShape& model, std::initializer_list<Activation> known) {
  const std::string name = keys.text("feed_forward.activation", name_of(*known.begin()));
  const auto* found = std::ranges::find(known, name, name_of);
  if (found == known.end())
    keys.fail(ErrorCode::kUnsupported,
              fmt::format("{} is \"{}\", which this build cannot compute", keys.full("feed_forward.activation"), name));
  for (LayerShape& layer : model.layers) layer.feed_forward.activation = found == known.end() ? *known.begin() : *found;
}

void make_plain(ModelShape& model) {
  for (LayerShape& layer : model.layers) layer.feed_forward.gated = false;
}

// A geometric sequence for the largest power of two of heads, then every second term of one twice as dense.
void add_slopes(ModelShape& model, double most) {
  model.rotary.clear();
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    attention.rotary = kNoRotary;
    attention.slopes.clear();
    std::int32_t whole = 1;
    while (whole * 2 <= attention.heads) whole *= 2;
    for (std::int32_t head = 0; head < attention.heads; ++head) {
      const double exponent = head < whole ? (head + 1.0) / whole : (2.0 * (head - whole) + 1.0) / (2.0 * whole);
      attention.slopes.push_back(static_cast<float>(fixed_exp(-most * exponent * fixed_log(2.0))));
    }
  }
}

void drop_rotation_of_full_layers(ModelShape& model) {
  const bool windowed = std::ranges::any_of(model.layers, [](const LayerShape& layer) { return layer.attention.window > 0; });
  for (LayerShape& layer : model.layers)
    if (windowed && layer.attention.window == 0) layer.attention.rotary = kNoRotary;
}

}  // namespace braid::model
