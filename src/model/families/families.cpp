#include "model/families/families.h"

#include "model/families/family.h"
#include "model/families/folder_decoder.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::array kFamilies = {
    &kApertus,   &kArcee,     &kBaichuan,      &kFalconH1,   &kLfm2Moe,    &kMamba2,       &kNemotronH, &kBloom,     &kChatGlm,
    &kCohere,    &kCohere2,   &kDeepSeek2,     &kDots1,      &kErnie45,    &kErnie45Moe,   &kExaone,    &kExaone4,   &kFalcon,
    &kFlexOlmo,  &kGemma,     &kGemma2,        &kGemma3,     &kGlm4,       &kGlm4Moe,      &kGpt2,      &kGptJ,      &kGptNeox,
    &kGptOss,    &kGranite,   &kGraniteHybrid, &kGraniteMoe, &kHunyuan,    &kHunyuanMoe,   &kInternLm2, &kLfm2,      &kLlama,
    &kMinicpm,   &kMiniMaxM2, &kMistral3,      &kMpt,        &kNemotron,   &kNemotronHMoe, &kOlmo,      &kOlmo2,     &kOlmoe,
    &kPhi2,      &kPhi3,      &kPhiMoe,        &kQwen2,      &kQwen2Moe,   &kQwen3,        &kQwen35,    &kQwen35Moe, &kQwen3Moe,
    &kQwen3Next, &kSeedOss,   &kSmolLm3,       &kStableLm,   &kStarcoder2,
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

Result<files::GgufContents> read_folder(const files::HfFolder& folder) {
  FolderConfig config(folder.config(), folder.path() + "/config.json");
  if (config.error) return *config.error;
  const auto reads = [&](const Family* family) {
    return std::ranges::find(family->folder_types, config.model_type()) != family->folder_types.end();
  };
  const auto* family = std::ranges::find_if(kFamilies, reads);
  if (family == kFamilies.end()) {
    config.fail(ErrorCode::kUnsupported, unknown("model_type", config.model_type(), folder_types()));
    return *config.error;
  }
  if (config.flag({"is_encoder_decoder"}, false))
    config.fail(ErrorCode::kUnsupported, "is_encoder_decoder is true: this server computes decoders only");
  FolderReader in(folder, std::move(config), (*family)->architecture);
  if (!in.config.error) (*family)->translate(in);
  // Where the family reads no experts, but the configuration has some, their tensors are refused later; a sentence says it better.
  for (const std::string_view key : {"num_local_experts", "num_experts"})
    if (!in.has_key("expert_count")) refuse_option(in, key);
  if (in.config.error) return *in.config.error;
  return in.take();
}

std::string known_architectures() { return fmt::format("{}", fmt::join(architectures(), ", ")); }

}  // namespace braid::model
