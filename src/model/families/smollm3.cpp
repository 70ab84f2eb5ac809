// SmolLM 3 (2025): Llama whose every fourth layer knows no positions.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_smollm3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  const std::vector<bool> rotating = keys.flags("attention.rotating_layers", model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (rotating.empty() ? (i + 1) % 4 == 0 : !rotating[i]) model.layers[i].attention.rotary = kNoRotary;
  return model;
}

void translate_smollm3(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in);
  pair_rotated(in, size);
  const auto period = in.config.count({"no_rope_layer_interval"}, 4, 1, 1 << 20);
  const std::vector<double> stated = in.config.numbers("no_rope_layers", static_cast<std::size_t>(size.layers));  // 1: it rotates
  std::vector<bool> rotating;
  for (std::int32_t i = 0; i < size.layers; ++i)
    rotating.push_back(stated.empty() ? (i + 1) % period != 0 : stated[static_cast<std::size_t>(i)] != 0.0);
  in.set("attention.rotating_layers", files::GgufArray{std::move(rotating)});
}

}  // namespace

const Family kSmolLm3 = {"smollm3", describe_smollm3, {"smollm3"}, translate_smollm3};

}  // namespace braid::model
