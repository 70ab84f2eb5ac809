#include "model/families/families.h"

#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/joined_rows.h"
#include "model/families/latent_heads.h"
#include "model/families/module_rows.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::array kFamilies = {
    &kApertus,    &kArcee,         &kBaichuan,   &kFalconH1, &kLfm2Moe,      &kMamba2,    &kNemotronH, &kBloom,     &kChatGlm,  &kCohere,
    &kCohere2,    &kDeepSeek2,     &kDots1,      &kErnie45,  &kErnie45Moe,   &kExaone,    &kExaone4,   &kFalcon,    &kFlexOlmo, &kGemma,
    &kGemma2,     &kGemma3,        &kGemma3n,    &kGemma4,   &kGlm4,         &kGlm4Moe,   &kGpt2,      &kGptJ,      &kGptNeox,  &kGptOss,
    &kGranite,    &kGraniteHybrid, &kGraniteMoe, &kHunyuan,  &kHunyuanMoe,   &kInternLm2, &kLfm2,      &kLlama,     &kMinicpm,  &kMinicpm3,
    &kMiniMaxM2,  &kMistral3,      &kMpt,        &kNemotron, &kNemotronHMoe, &kOlmo,      &kOlmo2,     &kOlmoe,     &kPhi2,     &kPhi3,
    &kPhiMoe,     &kQwen2,         &kQwen2Moe,   &kQwen3,    &kQwen35,       &kQwen35Moe, &kQwen3Moe,  &kQwen3Next, &kQwen2Vl,  &kQwen3Vl,
    &kQwen3VlMoe, &kSeedOss,       &kSmolLm3,    &kStableLm, &kStarcoder2,
};

// Models whose decoder reads what an encoder makes of the prompt.
constexpr std::array<std::string_view, 14> kEncoderDecoders = {
    "t5",     "mt5",     "umt5",    "t5encoder", "bart",    "mbart",    "pegasus",
    "marian", "whisper", "m2m_100", "led",       "t5gemma", "nllb-moe", "switch_transformers"};

// How many letters have to change (Levenshtein 1966).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = std::exchange(corner, row[j + 1]);
      row[j + 1] = std::min({above + (a[i] == b[j] ? 0U : 1U), row[j] + 1, corner + 1});
    }
  }
  return row.back();
}

// The three known names most like `name`.
std::string nearest(std::string_view name, std::vector<std::string_view> known) {
  const auto shared = [&](std::string_view other) {
    return static_cast<std::size_t>(std::ranges::mismatch(name, other).in1 - name.begin());
  };
  std::ranges::stable_sort(known, {},
                           [&](std::string_view other) { return distance(name, other) + 4 - std::min<std::size_t>(4, shared(other)); });
  known.resize(std::min<std::size_t>(known.size(), 3));
  return fmt::format("{}", fmt::join(known, ", "));
}

std::string unknown(std::string_view what, std::string_view name, std::vector<std::string_view> known) {
  if (std::ranges::find(kEncoderDecoders, name) != kEncoderDecoders.end())
    return fmt::format("{} is \"{}\", an encoder-decoder: this server computes decoders only", what, name);
  const std::string all = fmt::format("{}", fmt::join(known, ", "));
  return fmt::format("{} is \"{}\", which this build does not know; the nearest are {}; all: {}", what, name,
                     nearest(name, std::move(known)), all);
}

// The first of them.
std::string told(const std::vector<std::string>& parts) {
  constexpr std::size_t kMost = 8;
  if (parts.empty()) return "";
  const std::span<const std::string> first(parts.data(), std::min(kMost, parts.size()));
  const std::string more = parts.size() > kMost ? fmt::format(" and {} more", parts.size() - kMost) : "";
  return fmt::format("; unlike Llama's or GPT's layers its own have {}{}", fmt::join(first, ", "), more);
}

std::vector<std::string_view> architectures() {
  std::vector<std::string_view> names;
  for (const Family* family : kFamilies) names.push_back(family->architecture);
  return names;
}

std::vector<std::string_view> folder_types() {
  std::vector<std::string_view> names;
  for (const Family* family : kFamilies)
    for (const std::string_view type : family->folder_types)
      if (!type.empty()) names.push_back(type);
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<ModelShape> describe_model(const files::GgufFile& file) {
  auto architecture = file.string_or("general.architecture", "");
  if (!architecture) return architecture.error();
  const auto* family = std::ranges::find(kFamilies, *architecture, &Family::architecture);
  if (family == kFamilies.end())
    return Error{
        ErrorCode::kUnsupported, fmt::format("{}: {}", file.name(), unknown("general.architecture", *architecture, architectures())), {}};
  GgufKeys keys(file, (*family)->architecture);
  ModelShape model = (*family)->describe(keys);
  if (!keys.error && keys.count("expert_count", kMaxDimension) > 0 &&
      std::ranges::none_of(model.layers, [](const LayerShape& layer) { return layer.experts.has_value(); }))
    keys.fail(ErrorCode::kUnsupported, "the model is a mixture of experts, which this build cannot compute for its architecture");
  if (keys.error) return *keys.error;
  model.architecture = (*family)->architecture;
  return model;
}

namespace {

Result<files::GgufContents> read_folder_with(const files::HfFolder& folder, const FolderReader::Stands& stands) {
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  if (config.error) return *config.error;
  const auto reads = [&](const Family* family) {
    return std::ranges::find(family->folder_types, config.model_type()) != family->folder_types.end();
  };
  const auto* family = std::ranges::find_if(kFamilies, reads);
  if (family == kFamilies.end()) {
    config.fail(ErrorCode::kUnsupported,
                unknown("model_type", config.model_type(), folder_types()) + told(unknown_parts(folder, config.is_wrapped())));
    return *config.error;
  }
  if (config.flag({"is_encoder_decoder"}, false))
    config.fail(ErrorCode::kUnsupported, "is_encoder_decoder is true: this server computes decoders only");
  FolderReader in(folder, std::move(config), (*family)->architecture, stands);
  if (!in.config.error) (*family)->translate(in);
  // Where the family reads no experts, but the configuration has some, their tensors are refused later; a sentence says it better.
  for (const std::string_view key : {"num_local_experts", "num_experts"})
    if (!in.has_key("expert_count")) refuse_option(in, key);
  if (in.config.error) return *in.config.error;
  return in.take();
}

std::string without_weight(const std::string& name) { return name.ends_with(".weight") ? name.substr(0, name.size() - 7) : name; }

// A module that makes keys and values of latents lies in two tensors, by heads (part_heads), of which that of the values knows it.
void add_heads(const std::string& module, const files::GgufTensor& values, std::vector<ModulePlace>& places) {
  const std::string name = without_weight(values.name);
  const std::string keys = name.substr(0, name.size() - kLatentValues.size()) + std::string(kLatentKeys);
  const auto value = static_cast<std::ptrdiff_t>(values.shape[1]);
  const auto heads = static_cast<std::int32_t>(values.shape[2]);
  const std::int32_t plain = values.order.front();  // before the first head's values
  for (std::int32_t head = 0; head < heads; ++head) {
    const auto begin = values.order.begin() + head * value;
    places.push_back({.module = module, .tensor = name, .expert = head, .order = {begin, begin + value}});
    ModulePlace& own = places.emplace_back(ModulePlace{.module = module, .tensor = keys, .expert = head, .across = true});
    own.order.resize(static_cast<std::size_t>(plain));
    std::iota(own.order.begin(), own.order.end(), *begin - plain);
  }
}

void add_places(const files::GgufTensor& tensor, std::vector<ModulePlace>& places) {
  const auto* module = dynamic_cast<const ModuleRows*>(tensor.coded.get());
  if (module != nullptr && without_weight(tensor.name).ends_with(kLatentValues)) return add_heads(module->name(), tensor, places);
  const auto add = [&](const ModuleRows* rows, std::int32_t expert, const files::GgufTensor& own) {
    if (rows == nullptr) return;
    places.push_back({.module = rows->name(),
                      .tensor = without_weight(tensor.name),
                      .expert = expert,
                      .order = own.order,
                      .columns = own.columns,
                      .factors = own.factors,
                      .plus = own.plus,
                      .turned = rows->is_turned()});
  };
  add(module, -1, tensor);
  const auto* joined = dynamic_cast<const JoinedRows*>(tensor.coded.get());
  for (std::size_t i = 0; joined != nullptr && i < joined->parts().size(); ++i)
    add(dynamic_cast<const ModuleRows*>(joined->parts()[i].coded.get()), static_cast<std::int32_t>(i), joined->parts()[i]);
}

// What stands before the number of a layer; empty: it is none's.
std::string_view layers_of(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1))
    if (dot + 1 < name.size() && name[dot + 1] >= '0' && name[dot + 1] <= '9') return name.substr(0, dot);
  return {};
}

// Whether nothing but names of the whole model stands before the last part.
bool is_whole_model(std::string_view layers) {
  constexpr std::array<std::string_view, 8> kWhole = {"model",   "language_model", "text_model", "transformer",
                                                      "decoder", "backbone",       "gpt_neox",   "llm"};
  for (std::size_t dot = layers.find('.'); dot != std::string_view::npos; dot = layers.find('.')) {
    if (std::ranges::find(kWhole, layers.substr(0, dot)) == kWhole.end()) return false;
    layers.remove_prefix(dot + 1);
  }
  return true;
}

// A module as the folder calls it: of a model without its head layers may be "layers", and "model.layers" of one with it.
class FolderNames {
 public:
  explicit FolderNames(const files::HfFolder& folder) {
    for (const auto& [name, tensor] : folder.tensors()) {
      const std::string_view layers = layers_of(name);
      layers.empty() ? others_.insert(std::string_view(name).substr(0, name.rfind('.'))) : layers_.insert(layers);
    }
  }

  std::string operator()(const std::string& module) const {
    const std::string_view layers = layers_of(module);
    if (layers.empty()) return std::string(only_alike(others_, module));
    return std::string(only_alike(layers_, layers)) + module.substr(layers.size());
  }

 private:
  // The only one of the whole model that ends as the name does; or the name, which may be known.
  static std::string_view only_alike(const std::set<std::string_view>& known, std::string_view name) {
    if (known.contains(name) || !is_whole_model(name)) return name;
    const auto last = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
    const auto is_alike = [&](std::string_view other) { return last(other) == last(name) && is_whole_model(other); };
    return std::ranges::count_if(known, is_alike) == 1 ? *std::ranges::find_if(known, is_alike) : name;
  }

  std::set<std::string_view> layers_;  // what stands before the numbers of layers
  std::set<std::string_view> others_;  // modules that are in none
};

std::string_view activation_name(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
    case Activation::kClampedSwish:
      return "silu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_pytorch_tanh";
    case Activation::kRelu:
      return "relu";
    case Activation::kReluSquared:
      return "relu2";
    case Activation::kXielu:
      return "xielu";
  }
  return "silu";
}

}  // namespace

Result<files::GgufContents> read_folder(const files::HfFolder& folder) { return read_folder_with(folder, {}); }

Result<std::vector<ModulePlace>> place_modules(const files::HfFolder& folder,
                                               const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& modules) {
  FolderReader::Stands stands;
  const FolderNames name_in_folder(folder);
  for (const auto& [name, size] : modules)
    stands.emplace(name_in_folder(name) + ".weight", FolderReader::Stand{std::make_shared<ModuleRows>(name, size.first), size.second});
  const Result<files::GgufContents> contents = read_folder_with(folder, stands);
  if (!contents) return contents.error();
  std::vector<ModulePlace> places;
  for (const files::GgufTensor& tensor : contents->tensors) add_places(tensor, places);
  for (const auto& [name, size] : modules)
    if (std::ranges::find(places, name, &ModulePlace::module) == places.end())
      return Error{ErrorCode::kUnsupported, fmt::format("{}: the module {} cannot be adapted by this build", folder.path(), name), {}};
  return places;
}

Result<std::string> config_like(const ModelShape& model) {
  const auto* family = std::ranges::find(kFamilies, model.architecture, &Family::architecture);
  if (family == kFamilies.end() || (*family)->folder_types.front().empty())
    return Error{ErrorCode::kUnsupported, fmt::format("folders of the architecture {} are not known", model.architecture), {}};
  const LayerShape& layer = model.layers.front();
  const AttentionShape& attention = layer.attention;
  const auto rotated = attention.rotary == kNoRotary ? 0 : model.rotary[static_cast<std::size_t>(attention.rotary)].rotated;
  std::string text =
      fmt::format(R"({{"model_type":"{}","hidden_size":{},"num_hidden_layers":{},"vocab_size":{},"max_position_embeddings":{},)"
                  R"("num_attention_heads":{},"num_key_value_heads":{},"head_dim":{},"partial_rotary_factor":{},"intermediate_size":{},)"
                  R"("hidden_act":"{}","rope_theta":10000.0,"rms_norm_eps":1e-5,"layer_norm_eps":1e-5,"tie_word_embeddings":false)",
                  layer.experts && model.architecture == "llama" ? "mixtral" : (*family)->folder_types.front(), model.embedding,
                  model.layers.size(), model.vocab, model.context_length, std::max(1, attention.heads), std::max(1, attention.kv_heads),
                  std::max(1, attention.head_dim), rotated > 0 ? static_cast<double>(rotated) / attention.head_dim : 1.0,
                  std::max(1, layer.feed_forward.width), activation_name(layer.feed_forward.activation));
  if (layer.experts)
    text += fmt::format(
        R"(,"num_experts":{0},"num_local_experts":{0},"num_experts_per_tok":{1},"moe_intermediate_size":{2},"enable_moe_block":true)",
        layer.experts->router.experts(), layer.experts->router.chosen, layer.experts->each.width);
  // Of Granite and Falcon.
  text += fmt::format(R"(,"shared_intermediate_size":{},"new_decoder_architecture":{},"multi_query":{},"num_kv_heads":{})",
                      layer.feed_forward.width, attention.kv_heads > 1, attention.kv_heads == 1, std::max(1, attention.kv_heads));
  return text + "}";
}

std::string known_architectures() { return fmt::format("{}", fmt::join(architectures(), ", ")); }

}  // namespace braid::model
