// The language models of Qwen2-VL, Qwen2.5-VL and Qwen3-VL: Qwen 2 and Qwen 3, whose rotary positions follow the rows and columns of pictures.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"
#include "model/families/picture_sections.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace braid::model {

void read_picture_sections(GgufKeys& keys, ModelShape& model, const PictureSections& fallback, bool mixed) {
  constexpr std::string_view kKey = "rope.dimension_sections";
  constexpr std::size_t kStored = 4;  // of films' sound, which has none of the pairs
  RopeParameters& rope = model.rotary.front();
  rope.sections = fallback;
  rope.mixed = mixed;
  if (keys.has(kKey)) {
    const std::vector<std::int32_t> stored = keys.sizes(kKey, kStored, std::nullopt, kMaxHeadDim);
    if (!keys.error) std::copy_n(stored.begin(), rope.sections.size(), rope.sections.begin());
  }
  const std::int32_t sum = std::accumulate(rope.sections.begin(), rope.sections.end(), 0);
  if (sum != rope.rotated / 2)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} add up to {}, expected {} pairs of a head", keys.full(kKey), sum, rope.rotated / 2));
}

namespace {

ModelShape describe_qwen2vl(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  set_biases(model, Parts::kQueryKeyValue, Presence::kRequired);
  read_picture_sections(keys, model, {16, 24, 24}, false);
  return model;
}

ModelShape describe_qwen3vl(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  read_picture_sections(keys, model, {24, 20, 20}, true);
  return model;
}

void set_picture_sections(FolderReader& in, const PictureSections& usual) {
  std::vector<std::uint64_t> sections(usual.begin(), usual.end());
  for (const std::string_view name : {"rope_parameters", "rope_scaling"})
    if (auto rope = in.config.part(name))
      if (const auto given = rope->numbers("mrope_section", usual.size()); !given.empty())
        std::ranges::transform(given, sections.begin(),
                               [](double count) { return static_cast<std::uint64_t>(std::clamp(count, 0.0, double{kMaxHeadDim})); });
  sections.push_back(0);
  in.set("rope.dimension_sections", files::GgufArray{std::move(sections)});
}

void translate_qwen2vl(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
  set_picture_sections(in, {16, 24, 24});
}

void translate_qwen3vl(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
  set_picture_sections(in, {24, 20, 20});
}

}  // namespace

const Family kQwen2Vl = {"qwen2vl", describe_qwen2vl, {"qwen2_vl_text", "qwen2_vl", "qwen2_5_vl_text", "qwen2_5_vl"}, translate_qwen2vl};
const Family kQwen3Vl = {"qwen3vl", describe_qwen3vl, {"qwen3_vl_text", "qwen3_vl"}, translate_qwen3vl};

}  // namespace braid::model
