// Apertus (Swiss AI 2025): norms over heads, plain feed-forward networks of xIELU, whose parameters each layer has of its own.
#include "model/deterministic_math.h"
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

double softplus(double x) { return x > 30.0 ? x : fixed_log(1.0 + fixed_exp(x)); }

ModelShape describe_apertus(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  make_plain(model);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  const std::size_t layers = model.layers.size();
  const std::vector<double> positive = keys.numbers("xielu.alpha_p", layers, std::nullopt);
  const std::vector<double> negative = keys.numbers("xielu.alpha_n", layers, std::nullopt);
  const std::vector<double> linear = keys.numbers("xielu.beta", layers, 0.5);
  const std::vector<double> epsilon = keys.numbers("xielu.eps", layers, -1e-6);
  // Where the keys do not name the architecture, as in llama.cpp's files, they hold what was trained; where they do, what is computed with.
  const bool is_trained = keys.full("xielu.alpha_p") == "xielu.alpha_p";
  for (std::size_t i = 0; i < layers; ++i) {
    FeedForwardShape& feed_forward = model.layers[i].feed_forward;
    feed_forward.activation = Activation::kXielu;
    const double grows = is_trained ? softplus(positive[i]) : positive[i];
    const double falls = is_trained ? linear[i] + softplus(negative[i]) : negative[i];
    feed_forward.xielu = {static_cast<float>(grows), static_cast<float>(linear[i]), static_cast<float>(falls),
                          static_cast<float>(epsilon[i])};
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kApertusNames[] = {{"attention_layernorm", "attn_norm"},
                                                                           {"feedforward_layernorm", "ffn_norm"}};

void translate_apertus(FolderReader& in) {
  require_activation(in, {"xielu"});
  const FolderSize size = translate_decoder(in, kApertusNames);
  std::vector<double> positive, negative, linear, epsilon;
  for (std::int32_t i = 0; i < size.layers && !in.config.error; ++i) {
    const auto take = [&](std::string_view part, std::optional<double> fallback) {
      const std::string name = fmt::format("model.layers.{}.mlp.act_fn.{}", i, part);
      const std::optional<float> value = in.scalar(name);
      if (!value && !fallback) in.config.fail(ErrorCode::kBadFile, fmt::format("the tensor {} is missing, or not one value", name));
      in.remove(name);
      return value ? static_cast<double>(*value) : fallback.value_or(0.0);
    };
    linear.push_back(take("beta", 0.5));
    epsilon.push_back(take("eps", -1e-6));
    positive.push_back(take("alpha_p", std::nullopt));
    negative.push_back(take("alpha_n", std::nullopt));
  }
  in.set_bare("xielu.alpha_p", files::GgufArray{std::move(positive)});
  in.set_bare("xielu.alpha_n", files::GgufArray{std::move(negative)});
  in.set_bare("xielu.beta", files::GgufArray{std::move(linear)});
  in.set_bare("xielu.eps", files::GgufArray{std::move(epsilon)});
}

}  // namespace

const Family kApertus = {"apertus", describe_apertus, {"apertus"}, translate_apertus};

}  // namespace braid::model
