#include "model/families/eagle3.h"

#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

constexpr std::string_view kArchitecture = "eagle3";
constexpr std::size_t kReadLayers = 3;

// The one layer is "midlayer", or numbered as in other folders.
constexpr std::pair<std::string_view, std::string_view> kEagleNames[] = {{"midlayer.self_attn.q_proj", "blk.0.attn_q"},
                                                                         {"midlayer.self_attn.k_proj", "blk.0.attn_k"},
                                                                         {"midlayer.self_attn.v_proj", "blk.0.attn_v"},
                                                                         {"midlayer.self_attn.o_proj", "blk.0.attn_output"},
                                                                         {"midlayer.mlp.gate_proj", "blk.0.ffn_gate"},
                                                                         {"midlayer.mlp.up_proj", "blk.0.ffn_up"},
                                                                         {"midlayer.mlp.down_proj", "blk.0.ffn_down"},
                                                                         {"midlayer.input_layernorm", "blk.0.attn_norm"},
                                                                         {"midlayer.hidden_norm", "blk.0.hidden_norm"},
                                                                         {"midlayer.post_attention_layernorm", "blk.0.ffn_norm"},
                                                                         {"hidden_norm", "hidden_norm"},
                                                                         {"model.fc", "fc"}};

constexpr std::string_view kOffsets = "d2t";  // of each of its tokens: how much more the model's is
constexpr std::string_view kKnown = "t2d";    // of each of the model's: whether the head has it; the same once more

// Tensors of numbers that are no weights.
bool is_map(std::string_view name) { return name == kOffsets || name == kKnown || name == "model.d2t" || name == "model.t2d"; }

void translate_eagle(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_sizes(in);
  if (size.layers != 1)
    in.config.fail(ErrorCode::kUnsupported, fmt::format("num_hidden_layers is {}, and heads of one layer are known", size.layers));
  translate_rope(in, size, rotated_of(in, size));
  in.name_tensors(kEagleNames);
}

DecoderSize read_head_size(GgufKeys& keys, const ModelShape& model) {
  DecoderSize size;
  size.context_length = keys.size("context_length", std::nullopt, kMaxContext);
  size.layers = 1;
  size.embedding = keys.size("embedding_length", std::nullopt);
  size.feed_forward = keys.size("feed_forward_length", std::nullopt);
  size.heads = keys.size("attention.head_count", std::nullopt, kMaxHeads);
  size.kv_heads = keys.size("attention.head_count_kv", static_cast<std::uint64_t>(size.heads), kMaxHeads);
  size.head_dim = keys.size("attention.key_length", static_cast<std::uint64_t>(std::max(1, size.embedding / size.heads)), kMaxHeadDim);
  const files::GgufTensor* own = keys.file().tensor("token_embd.weight");
  size.vocab = own != nullptr && own->shape.size() == 2 ? static_cast<std::int32_t>(own->shape[1]) : model.vocab;
  return size;
}

ModelShape describe_eagle(GgufKeys& keys, const ModelShape& model) {
  const DecoderSize size = read_head_size(keys, model);
  const auto epsilon = static_cast<float>(keys.number("attention.layer_norm_rms_epsilon", 1e-6, 1e-12, 1.0));
  const auto norm = [&](const std::string& name) {
    return NormShape{.kind = NormShape::Kind::kRms, .name = name, .width = size.embedding, .epsilon = epsilon};
  };
  ModelShape head = decoder_ends(size);
  head.architecture = kArchitecture;
  head.rotary.push_back(read_rope(keys, size));
  if (keys.file().tensor("token_embd.weight") == nullptr) head.input.name.clear();
  if (const files::GgufTensor* output = keys.file().tensor("output.weight"); output != nullptr && output->shape.size() == 2)
    head.output.rows = static_cast<std::int32_t>(std::min<std::int64_t>(output->shape[1], kMaxDimension));
  LayerShape layer;
  layer.reads_beside = true;
  layer.attention = decoder_attention(keys, size, 0);
  layer.attention.rotary = 0;
  for (LinearShape* part : {&layer.attention.query, &layer.attention.key, &layer.attention.value}) {
    part->inputs = 2 * std::int64_t{size.embedding};
    part->bias = Presence::kOptional;
  }
  layer.attention.output.bias = Presence::kOptional;
  layer.feed_forward_norm = norm(layer_tensor(0, "ffn_norm"));
  layer.feed_forward = gated_feed_forward(keys, size, 0);
  head.prediction = PredictionShape{
      .token_norm = norm(layer_tensor(0, "attn_norm")),
      .hidden_norm = norm(layer_tensor(0, "hidden_norm")),
      .join = {.name = "fc", .inputs = std::int64_t{kReadLayers} * model.embedding, .outputs = size.embedding, .bias = Presence::kOptional},
      .layer = std::move(layer),
      .norm = norm("output_norm")};
  return head;
}

void check_widths(GgufKeys& keys, const ModelShape& head, const ModelShape& model) {
  if (head.output.rows == 0) keys.fail(ErrorCode::kBadFile, "lm_head.weight is missing");
  if (head.input.name.empty() && head.embedding != model.embedding)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("it has no embedding, and a width of {} where the model's is {}", head.embedding, model.embedding));
}

// Low, in the middle and high, unless it says which.
// Behind how many of the model's layers. What is named are layers as SGLang counts them, the first 0, and each is read behind it.
std::vector<std::int32_t> read_layers_of(FolderConfig& config, std::int32_t layers) {
  std::vector<std::int32_t> read = {2, layers / 2, layers - 3};
  std::optional<FolderConfig> own = config.part("eagle_config");
  const std::vector<double> named = own ? own->numbers("eagle_aux_hidden_state_layer_ids", kReadLayers) : std::vector<double>();
  if (own && own->error) config.error = own->error;
  for (std::size_t i = 0; i < named.size(); ++i) read[i] = static_cast<std::int32_t>(std::clamp(named[i], -1.0, 1e6)) + 1;
  for (std::int32_t& layer : read) {
    if (named.empty()) layer = std::clamp(layer, 0, layers - 1);
    if (layer < 0 || layer >= layers)
      config.fail(ErrorCode::kBadFile, fmt::format("eagle_aux_hidden_state_layer_ids names {} of a model of {} layers", layer - 1, layers));
  }
  return read;
}

Result<std::vector<TokenId>> tokens_of(const files::HfFolder& folder, std::int32_t own, std::int32_t vocab) {
  const auto refuse = [&](const std::string& what) { return Error{ErrorCode::kBadFile, fmt::format("{}: {}", folder.path(), what), {}}; };
  auto found = folder.tensors().find(std::string(kOffsets));
  if (found == folder.tensors().end()) found = folder.tensors().find("model.d2t");
  if (found == folder.tensors().end()) {
    if (own > vocab) return refuse(fmt::format("the head has {} tokens, the model {}, and d2t is missing", own, vocab));
    return std::vector<TokenId>();
  }
  const files::SafeTensor& offsets = found->second;
  if (offsets.dtype != "I64" || offsets.shape != std::vector<std::int64_t>{own})
    return refuse(fmt::format("d2t is expected to have {} values of the type I64", own));
  std::vector<TokenId> tokens(static_cast<std::size_t>(own));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::int64_t offset = 0;
    std::memcpy(&offset, offsets.bytes.data() + i * sizeof offset, sizeof offset);
    if (offset < -own || offset >= vocab - static_cast<std::int64_t>(i) || offset + static_cast<std::int64_t>(i) < 0)
      return refuse(fmt::format("d2t makes of token {} none of the model's {}", i, vocab));
    tokens[i] = static_cast<TokenId>(offset + static_cast<std::int64_t>(i));
  }
  return tokens;
}

}  // namespace

bool is_eagle_head(const files::HfFolder& folder) {
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  return std::ranges::any_of(config.texts("architectures"), [](const std::string& name) {
    return name.find("Eagle3") != std::string::npos || name.find("EAGLE3") != std::string::npos;
  });
}

Result<EagleHead> read_eagle_head(const files::HfFolder& folder, const ModelShape& model) {
  std::map<std::string, files::SafeTensor> weights = folder.tensors();
  std::erase_if(weights, [](const auto& named) { return is_map(named.first); });
  const auto without_maps = files::HfFolder::of_tensors(folder.path(), folder.config(), std::move(weights), folder.sources());
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  if (config.error) return *config.error;
  FolderReader in(without_maps, std::move(config), kArchitecture);
  if (!in.config.error) translate_eagle(in);
  std::vector<std::int32_t> read_layers = read_layers_of(in.config, static_cast<std::int32_t>(model.layers.size()));
  const bool norms_residual = in.config.flag({"norm_before_residual"}, false);
  if (in.config.error) return *in.config.error;
  files::GgufFile file = files::GgufFile::from_contents(in.take());
  GgufKeys keys(file, kArchitecture);
  ModelShape shape = describe_eagle(keys, model);
  check_widths(keys, shape, model);
  if (keys.error) return *keys.error;
  Result<std::vector<TokenId>> tokens = tokens_of(folder, shape.output.rows, model.vocab);
  if (!tokens) return tokens.error();
  return EagleHead{std::move(file), std::move(shape), std::move(read_layers), std::move(*tokens), norms_residual};
}

}  // namespace braid::model
