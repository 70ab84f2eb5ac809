#include "model/images/tower_families.h"

#include "model/encoders/encoder_families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <simdjson.h>
#include <utility>

namespace braid::model {
namespace {

using TowerFamily = TowerShape (*)(TowerFolder& in);

constexpr std::array kTowerFamilies = std::to_array<std::pair<std::string_view, TowerFamily>>({
    {"llava", llava_tower},
    {"llava_next", llava_next_tower},
    {"llava_onevision", llava_onevision_tower},
    {"gemma3", gemma3_tower},
    {"gemma4", gemma4_tower},
    {"idefics3", idefics3_tower},
    {"smolvlm", idefics3_tower},
    {"internvl", internvl_tower},
    {"internvl_chat", internvl_chat_tower},
    {"lfm2_vl", lfm2_vl_tower},
    {"minicpmv4_6", minicpm_v_tower},
    {"minicpmv", minicpm_v_resampler_tower},
    {"minicpmo", minicpm_v_resampler_tower},
    {"mistral3", mistral3_tower},
    {"qwen2_vl", qwen2_vl_tower},
    {"qwen2_5_vl", qwen25_vl_tower},
    {"qwen3_vl", qwen3_vl_tower},
    {"qwen3_vl_moe", qwen3_vl_tower},
    {"qwen3_5", qwen35_tower},
    {"qwen3_5_moe", qwen35_tower},
    {"kimi_k25", kimi_k25_tower},
});

constexpr std::int64_t kMostSize = 1 << 20;
constexpr std::int64_t kMostLayers = 1000;

}  // namespace

void check_tower(const TowerShape& tower, const std::function<void(ErrorCode, const std::string&)>& fail) {
  const EncoderShape& encoder = tower.encoder;
  if (encoder.layers.empty()) return fail(ErrorCode::kBadFile, "no layer of the tower is left");
  if (tower.resampler && (!tower.first.empty() || tower.order != TileOrder::kAsTheyCome || tower.resampler->width % 4 != 0))
    return fail(ErrorCode::kUnsupported, "its queries look at patches in a way that this build cannot compute");
  if (tower.connector.side < 1) return fail(ErrorCode::kBadFile, "no patch makes a vector");
  if (encoder.head_dim % (tower.rotation ? 4 : 1) != 0)
    return fail(ErrorCode::kUnsupported, fmt::format("heads of {} values cannot turn by rows and columns", encoder.head_dim));
  if (tower.order != TileOrder::kAsTheyCome && tower.places != PatchPlaces::kEach)
    return fail(ErrorCode::kUnsupported, "tiles of any size make no picture");
  if (tower.places == PatchPlaces::kNone || tower.places == PatchPlaces::kCrossed) return;
  const auto side = encoder.context < 1 ? 0 : std::llround(std::sqrt(static_cast<double>(encoder.context)));
  if (side < 1 || side * side != encoder.context)
    return fail(ErrorCode::kUnsupported, fmt::format("{} places of patches are no square", encoder.context));
  if (tower.places == PatchPlaces::kEach && side % tower.connector.side != 0)
    fail(ErrorCode::kBadFile, fmt::format("{} patches a side do not make squares of {}", side, tower.connector.side));
}

bool describes_tower(std::string_view config) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object vision;
  return parser.parse(config.data(), config.size()).get(root) == simdjson::SUCCESS &&
         root["vision_config"].get(vision) == simdjson::SUCCESS;
}

Result<TowerShape> read_tower_folder(const files::HfFolder& folder) {
  FolderConfig text(folder.config(), folder.path() + "/config.json");
  if (text.error) return *text.error;
  FolderConfig whole = text.outer();
  std::optional<FolderConfig> vision = whole.part("vision_config");
  const auto* family = std::ranges::find(kTowerFamilies, whole.model_type(), &std::pair<std::string_view, TowerFamily>::first);
  if (!vision || family == kTowerFamilies.end()) {
    whole.fail(ErrorCode::kUnsupported, fmt::format("images are not known of models of the type \"{}\"", whole.model_type()));
    return *whole.error;
  }
  TowerFolder in{std::move(whole), std::move(text), std::move(*vision), folder.tensors()};
  TowerShape tower = family->second(in);
  tower.encoder.family = family->first;
  if (!in.vision.error) check_tower(tower, [&in](ErrorCode code, const std::string& message) { in.vision.fail(code, message); });
  for (const FolderConfig* config : {&in.vision, &in.whole, &in.text})
    if (config->error) return *config->error;
  return tower;
}

std::string TowerFolder::prefix_of(std::string_view ending) {
  for (const auto& [name, tensor] : tensors)
    if (name.ends_with(ending) && (name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.'))
      return name.substr(0, name.size() - ending.size());
  vision.fail(ErrorCode::kBadFile, fmt::format("there is no tensor whose name ends with {}", ending));
  return {};
}

TowerShape common_tower(TowerFolder& in, const TowerDefaults& defaults) {
  TowerShape tower;
  EncoderShape& encoder = tower.encoder;
  encoder.width = in.vision.count({defaults.width_key}, defaults.width, 1, kMostSize);
  encoder.embedded = encoder.width;
  encoder.heads =
      static_cast<std::int32_t>(in.vision.count({"num_heads", "num_attention_heads", "vt_num_attention_heads"}, defaults.heads, 1, 4096));
  encoder.kv_heads = encoder.heads;
  encoder.head_dim = static_cast<std::int32_t>(in.vision.count({"head_dim"}, encoder.width / std::max(1, encoder.heads), 1, 4096));
  if (encoder.heads * encoder.head_dim != encoder.width)
    in.vision.fail(ErrorCode::kUnsupported,
                   fmt::format("{} heads of {} values are not the width of {}", encoder.heads, encoder.head_dim, encoder.width));
  encoder.epsilon = in.vision.number({"layer_norm_eps"}, defaults.epsilon, 0.0, 1.0);
  encoder.activation = activation_of(in.vision, {"hidden_act"}, defaults.activation);
  const std::vector<std::int64_t> patch = in.vision.counts({"patch_size"}, defaults.patch, 1, 4096);
  if (patch.front() != patch.back()) in.vision.fail(ErrorCode::kUnsupported, "patches are no squares");
  tower.patch = static_cast<std::int32_t>(patch.front());
  if (in.vision.count({"num_channels", "in_channels", "in_chans"}, 3, 1, 1024) != 3)
    in.vision.fail(ErrorCode::kUnsupported, "images have other than three channels");
  return tower;
}

std::int64_t patches_of_side(const TowerShape& tower, TowerFolder& in, std::int64_t pixels) {
  const std::vector<std::int64_t> size = in.vision.counts({"image_size"}, pixels, 1, 1 << 15);
  if (size.front() != size.back()) in.vision.fail(ErrorCode::kUnsupported, "images are no squares");
  if (size.front() < tower.patch) in.vision.fail(ErrorCode::kBadFile, "image_size is smaller than a patch");
  return std::max<std::int64_t>(1, size.front() / tower.patch);
}

std::int64_t feature_layers(TowerFolder& in, std::int64_t layers, std::int64_t fallback) {
  const std::vector<std::int64_t> asked = in.whole.counts({"vision_feature_layer", "select_layer"}, fallback, -kMostLayers, kMostLayers);
  if (asked.size() > 1) in.whole.fail(ErrorCode::kUnsupported, "vision_feature_layer names several layers");
  const std::int64_t kept = asked.front() < 0 ? layers + 1 + asked.front() : asked.front();
  if (kept < 1 || kept > layers) in.whole.fail(ErrorCode::kBadFile, fmt::format("vision_feature_layer is {} of {}", asked.front(), layers));
  return kept;
}

std::int64_t text_width(TowerFolder& in) { return in.text.count({"hidden_size", "n_embd"}, std::nullopt, 1, kMostSize); }

void add_two_layers(TowerShape& tower, TowerFolder& in, const std::string& first, const std::string& second, std::int64_t inputs,
                    std::int64_t inner) {
  const EncoderActivation between = activation_of(in.whole, {"projector_hidden_act"}, "gelu");
  tower.connector.dense.push_back({linear_of(first, inner, inputs), between});
  tower.connector.dense.push_back({linear_of(second, text_width(in), inner), EncoderActivation::kNone});
}

}  // namespace braid::model
