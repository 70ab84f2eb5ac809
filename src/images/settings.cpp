#include "images/settings.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int32_t kMostSide = 8192;

std::optional<Size> size_of(double height, double width) {
  if (!(height >= 1 && height <= kMostSide && width >= 1 && width <= kMostSide)) return std::nullopt;
  return Size{static_cast<std::int32_t>(height), static_cast<std::int32_t>(width)};
}

std::optional<double> number_in(simdjson::dom::element value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  return std::nullopt;
}

// Folders of before processors had names of their own.
std::string class_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kClasses = {{
      {"llava", "CLIPImageProcessor"},
      {"vipllava", "CLIPImageProcessor"},
      {"llava_next", "LlavaNextImageProcessor"},
      {"llava_onevision", "LlavaOnevisionImageProcessor"},
      {"idefics3", "Idefics3ImageProcessor"},
      {"smolvlm", "SmolVLMImageProcessor"},
      {"internvl", "GotOcr2ImageProcessor"},
      {"mistral3", "PixtralImageProcessor"},
      {"qwen2_vl", "Qwen2VLImageProcessor"},
      {"qwen2_5_vl", "Qwen2VLImageProcessor"},
      {"qwen3_vl", "Qwen2VLImageProcessor"},
      {"qwen3_vl_moe", "Qwen2VLImageProcessor"},
      {"gemma3", "Gemma3ImageProcessor"},
      {"gemma4", "Gemma4ImageProcessor"},
      {"lfm2_vl", "Lfm2VlImageProcessor"},
      {"kimi_k25", "Kimi_K25ImageProcessor"},
  }};
  for (const auto& [own, name] : kClasses)
    if (own == type) return std::string(name);
  return {};
}

}  // namespace

Result<Section> Section::parse(std::string_view text, std::string_view what) {
  Section section;
  section.parser_ = std::make_shared<simdjson::dom::parser>();
  simdjson::dom::element root;
  if (section.parser_->parse(text.data(), text.size()).get(root) != simdjson::SUCCESS || root.get(section.object_) != simdjson::SUCCESS)
    return Error{ErrorCode::kBadFile, fmt::format("{} is no JSON object", what), ""};
  return section;
}

Section Section::member(std::string_view name) const {
  Section section;
  const std::optional<simdjson::dom::element> value = find(name);
  if (value && value->get(section.object_) == simdjson::SUCCESS) section.parser_ = parser_;
  return section;
}

std::optional<simdjson::dom::element> Section::find(std::string_view name) const {
  simdjson::dom::element value;
  if (parser_ == nullptr || object_.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

std::optional<double> Section::number(std::string_view name) const {
  const std::optional<simdjson::dom::element> value = find(name);
  return value ? number_in(*value) : std::nullopt;
}

std::int32_t Section::count(std::string_view name, std::int32_t fallback, std::int32_t most) const {
  const std::optional<double> value = number(name);
  return value && *value >= 1 && *value <= most ? static_cast<std::int32_t>(*value) : fallback;
}

bool Section::flag(std::string_view name, bool fallback) const {
  bool value = fallback;
  const std::optional<simdjson::dom::element> found = find(name);
  return found && found->get(value) == simdjson::SUCCESS ? value : fallback;
}

std::string Section::text(std::string_view name, std::string fallback) const {
  std::string_view value;
  const std::optional<simdjson::dom::element> found = find(name);
  return found && found->get(value) == simdjson::SUCCESS ? std::string(value) : std::move(fallback);
}

std::optional<Size> Section::size(std::string_view name) const {
  if (const std::optional<double> side = number(name)) return size_of(*side, *side);
  if (const std::vector<double> pair = numbers(name); pair.size() == 2) return size_of(pair[0], pair[1]);
  const Section both = member(name);
  const std::optional<double> height = both.number("height");
  const std::optional<double> width = both.number("width");
  return height && width ? size_of(*height, *width) : std::nullopt;
}

std::vector<double> Section::numbers(std::string_view name) const {
  std::vector<double> out;
  simdjson::dom::array array;
  const std::optional<simdjson::dom::element> found = find(name);
  if (!found || found->get(array) != simdjson::SUCCESS) return out;
  for (const simdjson::dom::element item : array)
    if (const std::optional<double> number = number_in(item)) out.push_back(*number);
  return out;
}

std::vector<Size> Section::sizes(std::string_view name) const {
  std::vector<Size> out;
  simdjson::dom::array array;
  const std::optional<simdjson::dom::element> found = find(name);
  if (!found || found->get(array) != simdjson::SUCCESS) return out;
  for (const simdjson::dom::element item : array) {
    double height = 0;
    double width = 0;
    if (item.at(0).get(height) != simdjson::SUCCESS || item.at(1).get(width) != simdjson::SUCCESS) continue;
    if (const std::optional<Size> size = size_of(height, width)) out.push_back(*size);
  }
  return out;
}

Result<Settings> Settings::read(std::string_view preprocessor, std::string_view processor, std::string_view config) {
  Settings settings;
  const auto parse = [](std::string_view text, std::string_view what) {
    return text.empty() ? Result<Section>(Section()) : Section::parse(text, what);
  };
  Result<Section> words = parse(processor, "processor_config.json");
  if (!words) return words.error();
  Result<Section> pictures = parse(preprocessor, "preprocessor_config.json");
  if (!pictures) return pictures.error();
  Result<Section> model = parse(config, "config.json");
  if (!model) return model.error();
  settings.words = std::move(*words);
  settings.model = std::move(*model);
  settings.pictures = settings.words.member("image_processor");
  if (settings.pictures.is_empty()) settings.pictures = std::move(*pictures);
  if (settings.pictures.is_empty() && settings.processor_class().empty())
    return Error{ErrorCode::kUnsupported, "the model has neither a preprocessor_config.json nor a processor_config.json for images", ""};
  return settings;
}

std::string Settings::processor_class() const {
  // Its folders name CLIP's class, which its own code does not ask.
  if (model.text("model_type", "") == "internvl_chat") return "InternVLChat";
  std::string name = pictures.text("image_processor_type", pictures.text("feature_extractor_type", ""));
  for (const std::string_view ending : {"Fast", "Pil"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name.empty() ? class_of_type(model.text("model_type", "")) : name;
}

std::int32_t Settings::patch_size(std::int32_t fallback) const {
  constexpr std::int32_t kMost = 256;
  if (const std::optional<Size> own = pictures.size("patch_size")) return own->height;
  return words.count("patch_size", model.member("vision_config").count("patch_size", fallback, kMost), kMost);
}

}  // namespace braid::images
