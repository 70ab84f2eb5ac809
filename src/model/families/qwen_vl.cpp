// The language models of Qwen2-VL, Qwen2.5-VL and Qwen3-VL: Qwen 2 and Qwen 3, whose rotary positions follow the rows and columns of pictures.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
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

ModelShape describe_qwen3vl_moe(GgufKeys& keys) {
  ModelShape model = describe_qwen3vl(keys);
  add_experts(keys, model, {.normalised = true});
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

// The hub's files have the experts' matrices as [inputs, outputs], transformers' own as [outputs, inputs].
void turn_experts(FolderReader& in, std::string_view part, std::int64_t inputs) {
  for (const std::string& name : in.of_part(part)) {
    files::GgufTensor tensor = std::move(*in.extract(name));
    const bool lies = tensor.shape.size() == 3 && tensor.shape[0] != inputs && tensor.shape[1] == inputs && !tensor.coded;
    lies ? in.put_transposed(std::move(tensor)) : in.put(std::move(tensor));
  }
}

constexpr std::pair<std::string_view, std::string_view> kExpertNames[] = {{"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                                                          {"mlp.experts.down_proj", "ffn_down_exps.weight"}};

void translate_qwen3vl_moe(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kExpertNames);
  set_picture_sections(in, {24, 20, 20});
  translate_expert_keys(in);
  translate_router(in, true);
  turn_experts(in, "ffn_gate_up_exps", size.embedding);
  turn_experts(in, "ffn_down_exps", in.config.count({"moe_intermediate_size"}, 768, 1, 1 << 20));
  split_experts(in, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps");
  join_experts(in, size);
}

}  // namespace

const Family kQwen2Vl = {"qwen2vl", describe_qwen2vl, {"qwen2_vl_text", "qwen2_vl", "qwen2_5_vl_text", "qwen2_5_vl"}, translate_qwen2vl};
const Family kQwen3Vl = {"qwen3vl", describe_qwen3vl, {"qwen3_vl_text", "qwen3_vl"}, translate_qwen3vl};
const Family kQwen3VlMoe = {"qwen3vlmoe", describe_qwen3vl_moe, {"qwen3_vl_moe_text", "qwen3_vl_moe"}, translate_qwen3vl_moe};

}  // namespace braid::model
