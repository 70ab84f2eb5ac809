// Gemma 3n (2025): four residual streams, of which a layer computes with one, inputs of each layer, a path around attention, keys and values
// that later layers share, and in the first layers networks of which few values are not 0.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gemma_layers.h"
#include "model/families/gguf_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

void add_streams(GgufKeys& keys, ModelShape& model) {
  StreamsShape streams;
  streams.count = keys.size("altup.num_inputs", 4, kMostStreams);
  streams.active = keys.count("altup.active_idx", static_cast<std::uint64_t>(streams.count - 1));
  if (streams.count < 2) keys.fail(ErrorCode::kUnsupported, keys.full("altup.num_inputs") + " is 1, expected 2 or more");
  streams.begin = {.name = "altup_proj", .inputs = model.embedding, .outputs = model.embedding};
  streams.end = {.name = "altup_unembd_proj", .inputs = model.embedding, .outputs = model.embedding};
  model.streams = std::move(streams);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto name = [&](std::string_view part) { return layer_tensor(static_cast<std::int32_t>(i), part); };
    StreamMixShape mix;
    mix.norm = model.layers[i].attention_norm;
    mix.norm.name = name("altup_router_norm");
    mix.router = name("altup_router");
    mix.predict = name("altup_predict_coef");
    mix.correct = name("altup_correct_coef");
    if (keys.file().tensor(name("altup_correct_scale.weight")) != nullptr) mix.scale = name("altup_correct_scale");
    model.layers[i].mix = std::move(mix);
  }
}

void add_learned_residuals(GgufKeys& keys, ModelShape& model) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto name = [&](std::string_view part) { return layer_tensor(static_cast<std::int32_t>(i), part); };
    const files::GgufTensor* down = keys.file().tensor(name("laurel_l.weight"));
    const std::int64_t rank = down != nullptr && down->shape.size() == 2 ? down->shape[1] : 1;
    LearnedResidualShape path;
    path.down = {.name = name("laurel_l"), .inputs = model.embedding, .outputs = rank};
    path.up = {.name = name("laurel_r"), .inputs = rank, .outputs = model.embedding};
    path.norm = model.layers[i].attention_norm;
    path.norm.name = name("laurel_post_norm");
    model.layers[i].learned_residual = std::move(path);
  }
}

ModelShape describe_gemma3n(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  bend_gemma(keys, model, 5);
  add_local_angles(keys, model, model.rotary.front().rotated);
  model.output.cap = static_cast<float>(keys.number("final_logit_softcapping", 30.0, 0.0, 1e6));
  add_streams(keys, model);
  add_learned_residuals(keys, model);
  add_layer_inputs(keys, model);
  share_keys_and_values(keys, model);
  constexpr double kNone = -1e30;
  const std::vector<double> cuts = keys.numbers("activation_sparsity_scale", model.layers.size(), kNone);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (cuts[i] > kNone) model.layers[i].feed_forward.cut = static_cast<float>(cuts[i]);
  return model;
}

// Below which a part of a normal distribution is.
double quantile(double part) {
  double low = -10.0;
  double high = 10.0;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2.0;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < part ? low : high) = middle;
  }
  return low;
}

void translate_sparsity(FolderReader& in, std::size_t layers) {
  constexpr std::size_t kSparseLayers = 10;  // of files that do not say it
  std::vector<double> parts = in.config.numbers("activation_sparsity_pattern", layers);
  if (parts.empty()) {
    parts.assign(layers, 0.0);
    if (layers > kSparseLayers) std::fill_n(parts.begin(), kSparseLayers, 0.95);
  }
  for (double& part : parts) {
    if (!(part >= 0.0 && part < 1.0)) in.config.fail(ErrorCode::kBadFile, "activation_sparsity_pattern has a number that is no part of 1");
    part = part > 0.0 ? quantile(part) : -std::numeric_limits<double>::infinity();
  }
  in.set("activation_sparsity_scale", files::GgufArray{std::move(parts)});
}

constexpr auto kGemma3nNames = [] {
  constexpr std::pair<std::string_view, std::string_view> own[] = {
      {"altup.correct_output_scale", "altup_correct_scale.weight"},
      {"altup.correction_coefs", "altup_correct_coef"},
      {"altup.prediction_coefs", "altup_predict_coef"},
      {"altup.modality_router", "altup_router"},
      {"altup.router_norm", "altup_router_norm"},
      {"laurel.linear_left", "laurel_l"},
      {"laurel.linear_right", "laurel_r"},
      {"laurel.post_laurel_norm", "laurel_post_norm"},
  };
  std::array<std::pair<std::string_view, std::string_view>, std::size(own) + std::size(kGemmaLayerNames)> all;
  std::ranges::copy(kGemmaLayerNames, std::ranges::copy(own, all.begin()).out);
  return all;
}();

void join_streams(FolderReader& in) {
  for (const auto& [from, to] :
       {std::pair("model.altup_projections.", "altup_proj.weight"), {"model.altup_unembed_projections.", "altup_unembd_proj.weight"}}) {
    auto joined = join_matrices(in, from, ".weight");
    if (!joined) continue;
    joined->name = to;
    in.put(std::move(*joined));
  }
}

void translate_gemma3n(FolderReader& in) {
  require_activation(in, {"gelu_tanh"});
  const FolderSize size = translate_decoder(in, kGemma3nNames);
  if (in.config.error) return;
  if (!in.config.has({"rope_theta", "rope_parameters"})) in.set("rope.freq_base", 1e6);
  if (!in.config.has({"rope_local_base_freq", "rope_parameters"})) in.set("rope.freq_base_swa", 1e4);
  if (!in.config.has({"layer_types"})) in.set("attention.sliding_window_pattern", std::uint64_t{5});
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  in.set("final_logit_softcapping", in.config.number({"final_logit_softcapping"}, 30.0, 0.0, 1e6));
  in.set("altup.num_inputs", static_cast<std::uint64_t>(in.config.count({"altup_num_inputs"}, 4, 2, kMostStreams)));
  in.set("altup.active_idx", static_cast<std::uint64_t>(in.config.count({"altup_active_idx"}, 0, 0, kMostStreams)));
  if (!in.config.flag({"altup_correct_scale"}, true))
    in.remove_if([](std::string_view name) { return name.ends_with(".altup_correct_scale.weight"); });
  translate_sparsity(in, static_cast<std::size_t>(size.layers));
  translate_gemma_layers(in, size);
  join_streams(in);
}

}  // namespace

const Family kGemma3n = {"gemma3n", describe_gemma3n, {"gemma3n_text", "gemma3n"}, translate_gemma3n};

}  // namespace braid::model
