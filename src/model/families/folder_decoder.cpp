#include "model/families/folder_decoder.h"

#include "model/families/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

// One name for each function.
std::string activation_of(FolderReader& in) {
  const std::string name = in.config.text({"hidden_act", "hidden_activation", "activation_function", "activation"}, "");
  if (name == "swish") return "silu";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return "gelu_tanh";
  return name;
}

bool slides(const std::string& layer_type) { return layer_type == "sliding_attention"; }

// Which layers have the window: as layer_types says, or as older files do.
std::vector<bool> windowed_layers(FolderReader& in, std::size_t layers) {
  std::vector<bool> windowed(layers, true);
  const std::vector<std::string> types = in.config.texts("layer_types");
  for (const std::string& type : types)
    if (!slides(type) && type != "full_attention")
      in.config.fail(ErrorCode::kUnsupported, fmt::format("layer_types names \"{}\", which this build cannot compute", type));
  if (types.size() >= layers) {
    std::transform(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(layers), windowed.begin(), slides);
    return windowed;
  }
  if (!types.empty()) in.config.fail(ErrorCode::kBadFile, fmt::format("layer_types has {} entries for {} layers", types.size(), layers));
  if (!in.config.flag({"use_sliding_window"}, true)) return std::vector<bool>(layers, false);
  const auto first = static_cast<std::size_t>(in.config.count({"max_window_layers"}, 0, 0, 1 << 20));
  const auto period = static_cast<std::size_t>(in.config.count({"_sliding_window_pattern", "sliding_window_pattern"}, 0, 0, 1 << 20));
  for (std::size_t i = 0; i < layers; ++i) windowed[i] = i >= first && (period == 0 || (i + 1) % period != 0);
  return windowed;
}

void translate_windows(FolderReader& in, std::size_t layers) {
  const std::int64_t window = in.config.count({"sliding_window", "sliding_window_size"}, 0, 0, kMaxContext);
  if (window == 0) return;
  std::vector<bool> windowed = windowed_layers(in, layers);
  if (std::ranges::none_of(windowed, [](bool slides) { return slides; })) return;
  in.set("attention.sliding_window", static_cast<std::uint64_t>(window));
  in.set("attention.sliding_window_pattern", files::GgufArray{std::move(windowed)});
}

}  // namespace

namespace {

// Of networks: one for all layers, or one for each.
void translate_widths(FolderReader& in, const FolderSize& size) {
  const std::vector<std::int64_t> widths = in.config.counts({"intermediate_size", "n_inner", "ffn_hidden_size"},
                                                            std::min<std::int64_t>(4L * size.embedding, kMaxDimension), 1, kMaxDimension);
  if (std::ranges::count(widths, widths.front()) == std::ssize(widths))
    return in.set("feed_forward_length", static_cast<std::uint64_t>(widths.front()));
  if (std::cmp_less(widths.size(), size.layers))
    in.config.fail(ErrorCode::kBadFile, fmt::format("intermediate_size has {} entries for {} layers", widths.size(), size.layers));
  in.set("feed_forward_length", files::GgufArray{std::vector<std::uint64_t>(widths.begin(), widths.end())});
}

}  // namespace

FolderSize translate_sizes(FolderReader& in, KeyHeads key_heads) {
  FolderConfig& config = in.config;
  const auto size = [&](std::string_view key, FolderConfig::Names names, std::optional<std::int64_t> fallback, std::uint64_t most) {
    const std::int64_t value = config.count(names, fallback, 1, static_cast<std::int64_t>(most));
    in.set(key, static_cast<std::uint64_t>(value));
    return static_cast<std::int32_t>(value);
  };
  FolderSize out;
  size("context_length", {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"}, 2048, kMaxContext);
  const std::size_t listed = config.texts("layers_block_type").size();
  out.layers = size("block_count", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"},
                    listed == 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(listed)), kMaxLayers);
  out.embedding = size("embedding_length", {"hidden_size", "n_embd", "d_model"}, std::nullopt, kMaxDimension);
  translate_widths(in, out);
  out.heads = size("attention.head_count", {"num_attention_heads", "n_head", "n_heads"}, std::nullopt, kMaxHeads);
  out.kv_heads = out.heads;
  if (key_heads == KeyHeads::kAsConfigured)
    out.kv_heads = size("attention.head_count_kv", {"num_key_value_heads", "num_kv_heads"}, out.heads, kMaxHeads);
  if (out.heads % out.kv_heads != 0)
    config.fail(ErrorCode::kBadFile,
                fmt::format("num_key_value_heads is {}, expected a divisor of num_attention_heads = {}", out.kv_heads, out.heads));
  out.head_dim = static_cast<std::int32_t>(config.count({"head_dim"}, std::max(1, out.embedding / out.heads), 1, kMaxHeadDim));
  if (static_cast<std::uint64_t>(out.heads) * static_cast<std::uint64_t>(out.head_dim) > kMaxDimension)
    config.fail(ErrorCode::kBadFile, fmt::format("{} heads of {} values are wider than any model", out.heads, out.head_dim));
  if (config.has({"head_dim"})) {
    in.set("attention.key_length", static_cast<std::uint64_t>(out.head_dim));
    in.set("attention.value_length", static_cast<std::uint64_t>(out.head_dim));
  } else if (out.embedding % out.heads != 0) {
    config.fail(ErrorCode::kBadFile,
                fmt::format("num_attention_heads is {}, expected a divisor of hidden_size = {}", out.heads, out.embedding));
  }
  if (config.has({"rms_norm_eps"})) in.set("attention.layer_norm_rms_epsilon", config.number({"rms_norm_eps"}, std::nullopt, 1e-12, 1.0));
  const FolderConfig::Names layer_epsilon = {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"};
  if (config.has(layer_epsilon)) in.set("attention.layer_norm_epsilon", config.number(layer_epsilon, std::nullopt, 1e-12, 1.0));
  if (const std::string activation = activation_of(in); !activation.empty()) in.set("feed_forward.activation", activation);
  translate_windows(in, static_cast<std::size_t>(out.layers));
  return out;
}

void take_feed_forward_length(FolderReader& in) {
  if (const std::int64_t width = in.rows("blk.0.ffn_up.weight"); width > 0)
    in.set("feed_forward_length", static_cast<std::uint64_t>(width));
}

std::int32_t rotated_of(FolderReader& in, const FolderSize& size, double fallback) {
  double factor = in.config.number({"partial_rotary_factor", "rotary_pct", "rope_pct"}, fallback, 0.0, 1.0);
  if (auto rope = in.config.part("rope_parameters")) factor = rope->number({"partial_rotary_factor"}, factor, 0.0, 1.0);
  return static_cast<std::int32_t>(size.head_dim * factor);
}

FolderSize translate_decoder(FolderReader& in, FolderReader::Names own, double rotated) {
  const FolderSize size = translate_sizes(in);
  translate_rope(in, size, rotated_of(in, size, rotated));
  in.name_tensors(own);
  if (in.config.flag({"tie_word_embeddings"}, false) && in.has("token_embd.weight")) in.remove("output.weight");
  return size;
}

void pair_rotated(FolderReader& in, const FolderSize& size, std::int32_t rotated) {
  if (in.config.error) return;
  in.reorder("attn_q", paired_rows(size.heads, size.head_dim, rotated));
  in.reorder("attn_k", paired_rows(size.kv_heads, size.head_dim, rotated));
}

void require_activation(FolderReader& in, std::initializer_list<std::string_view> known) {
  const std::string name = activation_of(in);
  if (name.empty() || std::ranges::find(known, name) != known.end()) return;
  in.config.fail(ErrorCode::kUnsupported, fmt::format("the activation is \"{}\", expected {} for a model of the type {}", name,
                                                      fmt::join(known, " or "), in.config.model_type()));
}

void refuse_option(FolderReader& in, std::string_view key) {
  if (!in.config.has({key})) return;
  FolderConfig probe = in.config;  // whose failures are not those of the folder
  const bool off = probe.count({key}, 1, 0, 0) == 0 && !probe.error;
  FolderConfig flag = in.config;
  const bool is_false = !flag.flag({key}, true) && !flag.error;
  if (!off && !is_false) in.config.fail(ErrorCode::kUnsupported, fmt::format("{} is set, which this build cannot compute", key));
}

}  // namespace braid::model
