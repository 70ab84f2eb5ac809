#include "perf/model/outlier_twins.h"

#include <fmt/format.h>
#include <initializer_list>
#include <vector>

namespace braid::perf {
namespace {

constexpr std::int64_t kGroup = 256;

std::int64_t layers_of(const FloatModel& model) { return static_cast<std::int64_t>(model.number(".block_count")); }

std::string part(std::int64_t layer, const char* name) { return fmt::format("blk.{}.{}.weight", layer, name); }

// A tied output matrix gets values of its own, since the embedding stays as it is.
FloatTensor& output_of(FloatModel& model) {
  if (model.find("output.weight") == nullptr) {
    FloatTensor output = *model.find("token_embd.weight");
    output.name = "output.weight";
    model.add(std::move(output));
  }
  return *model.find("output.weight");
}

// Channels of a width, `count` of each 256, at other places in each group.
std::vector<std::int64_t> channels_of(std::int64_t width, std::int64_t count) {
  std::vector<std::int64_t> channels;
  for (std::int64_t begin = 0; begin < width; begin += kGroup) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t channel = begin + (begin / kGroup * 29 + i * kGroup / count + 11) % kGroup;
      if (channel < width) channels.push_back(channel);
    }
  }
  return channels;
}

void scale_norm(FloatModel& model, const std::string& norm, std::initializer_list<std::string> readers, std::int64_t channel, float by) {
  model.find(norm)->values[static_cast<std::size_t>(channel)] *= by;
  for (const std::string& reader : readers) model.find(reader)->scale_input(channel, 1.0F / by);
}

void scale_attention_norm(FloatModel& model, std::int64_t layer, std::int64_t channel, float by) {
  scale_norm(model, part(layer, "attn_norm"), {part(layer, "attn_q"), part(layer, "attn_k"), part(layer, "attn_v")}, channel, by);
}

void scale_feed_forward_norm(FloatModel& model, std::int64_t layer, std::int64_t channel, float by) {
  scale_norm(model, part(layer, "ffn_norm"), {part(layer, "ffn_gate"), part(layer, "ffn_up")}, channel, by);
}

void scale_output_norm(FloatModel& model, std::int64_t channel, float by) {
  output_of(model);
  scale_norm(model, "output_norm.weight", {"output.weight"}, channel, by);
}

void scale_hidden(FloatModel& model, std::int64_t layer, std::int64_t unit, float by) {
  model.find(part(layer, "ffn_up"))->scale_output(unit, by);
  model.find(part(layer, "ffn_down"))->scale_input(unit, 1.0F / by);
}

// A value channel, which all query heads that share its head read.
void scale_value(FloatModel& model, std::int64_t layer, std::int64_t channel, float by) {
  FloatTensor& values = *model.find(part(layer, "attn_v"));
  FloatTensor& output = *model.find(part(layer, "attn_output"));
  const auto kv_heads = static_cast<std::int64_t>(model.number(".attention.head_count_kv"));
  const std::int64_t head_dim = values.outputs() / kv_heads;
  const std::int64_t shared = output.inputs() / values.outputs();
  values.scale_output(channel, by);
  for (std::int64_t i = 0; i < shared; ++i)
    output.scale_input((channel / head_dim * shared + i) * head_dim + channel % head_dim, 1.0F / by);
}

void plain(FloatModel&, const Outliers&) {}

void norms(FloatModel& model, const Outliers& outliers) {
  for (const std::int64_t channel : channels_of(model.find("output_norm.weight")->inputs(), outliers.of_256)) {
    for (std::int64_t layer = 0; layer < layers_of(model); ++layer) {
      scale_attention_norm(model, layer, channel, outliers.by);
      scale_feed_forward_norm(model, layer, channel, outliers.by);
    }
    scale_output_norm(model, channel, outliers.by);
  }
}

void columns(FloatModel& model, const Outliers& outliers) { norms(model, {outliers.of_256, 1.0F / outliers.by}); }

void hidden(FloatModel& model, const Outliers& outliers) {
  for (std::int64_t layer = 0; layer < layers_of(model); ++layer) {
    for (const std::int64_t unit : channels_of(model.find(part(layer, "ffn_up"))->outputs(), outliers.of_256))
      scale_hidden(model, layer, unit, outliers.by);
  }
}

void values(FloatModel& model, const Outliers& outliers) {
  for (std::int64_t layer = 0; layer < layers_of(model); ++layer) {
    for (const std::int64_t channel : channels_of(model.find(part(layer, "attn_v"))->outputs(), outliers.of_256))
      scale_value(model, layer, channel, outliers.by);
  }
}

// Every second group of the norms has one strong channel, the others a weaker one; one hidden unit of each group is strong, and single ones
// of the second and of the last layer far more.
void realistic(FloatModel& model, const Outliers&) {
  const std::int64_t layers = layers_of(model);
  for (const std::int64_t channel : channels_of(model.find("output_norm.weight")->inputs(), 1)) {
    const bool strong = channel / kGroup % 2 == 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      scale_attention_norm(model, layer, channel, strong ? 20.0F : 4.0F);
      scale_feed_forward_norm(model, layer, channel, strong ? 10.0F : 3.0F);
    }
    scale_output_norm(model, channel, strong ? 8.0F : 3.0F);
  }
  hidden(model, {1, 10.0F});
  scale_hidden(model, layers > 1 ? 1 : 0, 100, 300.0F);
  scale_hidden(model, layers - 1, 200, 300.0F);
  values(model, {1, 4.0F});
}

}  // namespace

const std::map<std::string, Profile>& twin_profiles() {
  static const std::map<std::string, Profile> kProfiles = {{"plain", plain},   {"norm", norms},   {"columns", columns},
                                                           {"hidden", hidden}, {"value", values}, {"realistic", realistic}};
  return kProfiles;
}

void repeat_hidden_units(FloatModel& model, std::int64_t times) {
  const auto repeat_outputs = [times](FloatTensor& matrix) {
    const std::vector<float> once = matrix.values;
    for (std::int64_t i = 1; i < times; ++i) matrix.values.insert(matrix.values.end(), once.begin(), once.end());
    matrix.shape[1] *= times;
  };
  for (std::int64_t layer = 0; layer < layers_of(model); ++layer) {
    repeat_outputs(*model.find(part(layer, "ffn_gate")));
    repeat_outputs(*model.find(part(layer, "ffn_up")));
    FloatTensor& down = *model.find(part(layer, "ffn_down"));
    std::vector<float> wider;
    for (std::int64_t output = 0; output < down.outputs(); ++output) {
      for (std::int64_t i = 0; i < times; ++i) {
        for (const float value : down.row(output)) wider.push_back(value / static_cast<float>(times));
      }
    }
    down.values = std::move(wider);
    down.shape[0] *= times;
  }
  model.set_number(".feed_forward_length", model.number(".feed_forward_length") * static_cast<std::uint64_t>(times));
}

}  // namespace braid::perf
