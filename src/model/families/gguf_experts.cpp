#include "model/families/gguf_experts.h"

#include "model/families/gguf_decoder.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMaxExperts = 4096;

RouterShape::Scoring read_scoring(GgufKeys& keys, RouterShape::Scoring fallback) {
  const std::int32_t number = keys.count("expert_gating_func", 1000);  // llama.cpp's numbers; 0: as the family does
  if (number == 1) return RouterShape::Scoring::kSoftmax;
  if (number == 2) return RouterShape::Scoring::kSigmoid;
  if (number == 3) return RouterShape::Scoring::kSoftmaxOfChosen;
  if (number != 0) keys.fail(ErrorCode::kUnsupported, fmt::format("{} is {}, expected 1, 2 or 3", keys.full("expert_gating_func"), number));
  return fallback;
}

void check_choice(GgufKeys& keys, const RouterShape& router) {
  const std::int32_t experts = router.experts();
  if (experts < 1 || router.chosen < 1)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is to choose {} of {} experts", router.linear.name, router.chosen, experts));
  if (experts % router.groups != 0)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("{} is {}, expected a divisor of the {} experts", keys.full("expert_group_count"), router.groups, experts));
  if (router.chosen_groups > router.groups || router.group_best > experts / router.groups)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("{} of {} groups of {} experts cannot be chosen", router.chosen_groups, router.groups, experts / router.groups));
  if (router.chosen > experts / router.groups * router.chosen_groups)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("{} is {}, more than there are to choose from", keys.full("expert_used_count"), router.chosen));
}

// But for what layers may have of their own: names, how many experts there are and are chosen.
RouterShape read_router(GgufKeys& keys, const ModelShape& model, const RouterHabits& habits) {
  RouterShape router;
  router.scoring = read_scoring(keys, habits.scoring);
  router.linear.inputs = model.embedding;
  router.linear.exact = true;
  router.corrected = Presence::kOptional;
  router.groups = std::max(1, keys.count("expert_group_count", kMaxExperts));
  router.chosen_groups = std::max(1, keys.count("expert_group_used_count", kMaxExperts));
  router.group_best = router.groups > 1 ? habits.group_best : 1;
  router.normalised = keys.flag("expert_weights_norm", habits.normalised);
  router.sum_epsilon = habits.sum_epsilon;
  router.scale = static_cast<float>(keys.number_unless(0.0, "expert_weights_scale", 1.0, 1e-6, 1e6));
  return router;
}

// Of a matrix in the file; 0: there is none.
std::int64_t outputs_of(GgufKeys& keys, const std::string& name) {
  const files::GgufTensor* tensor = keys.file().tensor(name + ".weight");
  if (tensor == nullptr || tensor->shape.size() < 2) return 0;
  if (tensor->shape[1] < 1 || tensor->shape[1] > static_cast<std::int64_t>(kMaxDimension))
    keys.fail(ErrorCode::kBadFile, fmt::format("{}.weight has {} rows", name, tensor->shape[1]));
  return keys.error ? 0 : tensor->shape[1];
}

// Files of early 2024 have experts of another width than that of dense networks, and no key for it.
void take_widths_of_tensors(GgufKeys& keys, std::vector<std::int32_t>& widths) {
  for (std::size_t i = 0; i < widths.size(); ++i)
    for (const char* part : {"ffn_up_exps", "ffn_up.0"})
      if (const std::int64_t width = outputs_of(keys, layer_tensor(static_cast<std::int32_t>(i), part)); width > 0)
        widths[i] = static_cast<std::int32_t>(width);
}

// A network whose tensors are those of a dense one with `ending`.
FeedForwardShape network(GgufKeys& keys, const LayerShape& dense, std::int32_t layer, std::string_view ending, std::int32_t width) {
  FeedForwardShape shape = dense.feed_forward;
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(layer, fmt::format("{}_{}", part, ending)), .inputs = inputs, .outputs = outputs};
  };
  const std::int64_t embedding = dense.feed_forward.down.outputs;
  shape.width = width;
  shape.gate = linear("ffn_gate", embedding, width);
  shape.up = linear("ffn_up", embedding, width);
  shape.down = linear("ffn_down", width, embedding);
  const LinearShape joined = linear("ffn_gate_up", embedding, width);  // the gate's rows of each expert, then those of up
  if (keys.file().tensor(joined.name + ".weight") == nullptr) {
    // Files of early 2024 have a tensor for each expert.
    if (keys.file().tensor(layer_tensor(layer, "ffn_up.0.weight")) == nullptr || ending != "exps") return shape;
    for (const auto& [part, name] : {std::pair{&shape.gate, "ffn_gate"}, {&shape.up, "ffn_up"}, {&shape.down, "ffn_down"}}) {
      part->name = layer_tensor(layer, name);
      part->apart = true;
    }
    return shape;
  }
  shape.gate.name = shape.up.name = joined.name;
  shape.gate.stored_outputs = shape.up.stored_outputs = 2 * std::int64_t{width};
  shape.up.first_output = width;
  return shape;
}

}  // namespace

void add_experts(GgufKeys& keys, ModelShape& model, const RouterHabits& habits) {
  if (keys.error) return;
  const RouterShape router = read_router(keys, model, habits);
  const std::size_t layers = model.layers.size();
  const std::vector<std::int32_t> counts = keys.sizes("expert_count", layers, std::nullopt, kMaxExperts);
  const auto most = static_cast<std::uint64_t>(std::max(1, std::ranges::max(counts)));
  const std::vector<std::int32_t> chosen = keys.sizes("expert_used_count", layers, std::nullopt, most);
  const std::int32_t dense_width = model.layers.front().feed_forward.width;
  std::vector<std::int32_t> widths = keys.sizes("expert_feed_forward_length", layers, static_cast<std::uint64_t>(dense_width));
  if (!keys.has("expert_feed_forward_length")) take_widths_of_tensors(keys, widths);
  const std::int32_t latent = keys.count("moe_latent_size", kMaxDimension);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(layers) && !keys.error; ++i) {
    const auto at = static_cast<std::size_t>(i);
    LayerShape& layer = model.layers[at];
    RouterShape own = router;
    own.linear.name = layer_tensor(i, "ffn_gate_inp");
    own.linear.outputs = counts[at];
    own.chosen = chosen[at];
    own.correction = layer_tensor(i, "exp_probs_b");
    const bool routes = keys.file().tensor(own.linear.name + ".weight") != nullptr;
    if (routes || counts[at] > 0) check_choice(keys, own);
    if (!routes) continue;
    ExpertsShape experts{.router = std::move(own), .each = network(keys, layer, i, "exps", widths[at]), .shared_gate = {}};
    if (latent > 0) {
      experts.latent_down = {.name = layer_tensor(i, "ffn_latent_down"), .inputs = model.embedding, .outputs = latent};
      experts.latent_up = {.name = layer_tensor(i, "ffn_latent_up"), .inputs = latent, .outputs = model.embedding};
      experts.each.gate.inputs = experts.each.up.inputs = experts.each.down.outputs = latent;
    }
    if (keys.file().tensor(layer_tensor(i, "ffn_gate_inp_shexp.weight")) != nullptr)
      experts.shared_gate = layer_tensor(i, "ffn_gate_inp_shexp");
    const auto shared = static_cast<std::int32_t>(outputs_of(keys, layer_tensor(i, "ffn_up_shexp")));
    layer.feed_forward = network(keys, layer, i, "shexp", shared);
    layer.experts = std::move(experts);
  }
}

namespace {

PredictionShape prediction_of(const ModelShape& model, std::size_t index) {
  const auto name = [index](std::string_view part) {
    return layer_tensor(static_cast<std::int32_t>(index), fmt::format("nextn.{}", part));
  };
  const auto norm = [&](std::string_view part) {
    NormShape shape = model.output.norm;
    shape.name = name(part);
    return shape;
  };
  return {.token_norm = norm("enorm"),
          .hidden_norm = norm("hnorm"),
          .join = {.name = name("eh_proj"), .inputs = 2 * std::int64_t{model.embedding}, .outputs = model.embedding},
          .layer = model.layers[index],
          .norm = norm("shared_head_norm")};
}

}  // namespace

void take_prediction_layers(GgufKeys& keys, ModelShape& model) {
  const auto extra = static_cast<std::size_t>(keys.count("nextn_predict_layers", kMaxLayers));
  if (extra == 0 || keys.error) return;
  if (extra >= model.layers.size()) {
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {} of {} layers", keys.full("nextn_predict_layers"), extra, model.layers.size()));
    return;
  }
  PredictionShape prediction = prediction_of(model, model.layers.size() - extra);
  const auto has = [&](const std::string& name) { return keys.file().tensor(name + ".weight") != nullptr; };
  const LayerShape& layer = prediction.layer;
  const std::string* const needed[] = {&prediction.join.name,        &prediction.norm.name,      &prediction.token_norm.name,
                                       &prediction.hidden_norm.name, &layer.attention_norm.name, &layer.attention.query.name,
                                       &layer.attention.output.name};
  if (layer.attends() && !layer.carries_state() && std::ranges::all_of(needed, [&](const std::string* name) { return has(*name); }))
    model.prediction = std::move(prediction);
  model.layers.resize(model.layers.size() - extra);
  for (const files::GgufTensor& tensor : keys.file().tensors())
    for (std::size_t i = 0; i < extra; ++i)
      if (tensor.name.starts_with(fmt::format("blk.{}.", model.layers.size() + i))) model.unused.push_back(tensor.name);
}

}  // namespace braid::model
