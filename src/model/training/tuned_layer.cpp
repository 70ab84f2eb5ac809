#include "model/training/tuned_layer.h"

#include "model/sampling/philox.h"
#include "model/training/row_math.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::model {

TunedLayer::TunedLayer(FrozenLayer layer, LoraShape lora, Modules modules)
    : layer_(std::move(layer)), lora_(std::move(lora)), modules_(std::move(modules)),
      scale_(static_cast<double>(lora_.alpha) / static_cast<double>(lora_.rank)),
      rank_(static_cast<std::size_t>(lora_.rank)), linears_{
                                                       {layer_.query, modules_[kQuery], input_, query_, input_slope_, query_slope_},
                                                       {layer_.output, modules_[kOutput], attended_, attention_, attended_slope_,
                                                        attention_slope_},
                                                       {layer_.gate, modules_[kGate], hidden_, gate_, hidden_slope_, gate_slope_},
                                                       {layer_.up, modules_[kUp], hidden_, up_, hidden_slope_, up_slope_},
                                                       {layer_.down, modules_[kDown], activated_, down_, activated_slope_, down_slope_}} {
  for (Linear* linear : {&linears_.query, &linears_.output, &linears_.gate, &linears_.up, &linears_.down}) {
    for (Row* row : {&linear->x, &linear->x_slope}) row->resize(static_cast<std::size_t>(linear->base.inputs));
    for (Row* row : {&linear->y, &linear->y_slope}) row->resize(static_cast<std::size_t>(linear->base.outputs));
    linear->mid.resize(rank_);
  }
  for (Row* row : {&stream_, &stream_slope_, &end_, &end_slope_, &final_}) row->resize(static_cast<std::size_t>(layer_.width));
  for (Row* row : {&turned_, &turned_slope_}) row->resize(query_.size());
  place_parameters();
  plan_text();
  plan_score();
  plan_slope();
}

void TunedLayer::place_parameters() {
  for (std::size_t m = 0; m < kModules; ++m) {
    TunedModule& module = modules_[m];
    if (!module.is_tuned) continue;
    module.down = head_;
    module.up = module.down + rank_ * static_cast<std::size_t>(bases()[m]->inputs);
    head_ = module.up + rank_ * static_cast<std::size_t>(bases()[m]->outputs);
  }
}

// As PEFT begins: A uniform, B zeros.
std::vector<float> TunedLayer::first_parameters(std::uint64_t seed) const {
  std::vector<float> parameters(parameter_count(), 0.0F);
  for (std::size_t m = 0; m < kModules; ++m) {
    const TunedModule& module = modules_[m];
    if (!module.is_tuned) continue;
    const double most = 1.0 / std::sqrt(static_cast<double>(bases()[m]->inputs));
    for (std::size_t i = module.down; i < module.up; ++i)
      parameters[i] = static_cast<float>(
          most * (2.0 * uniform_draw(seed, static_cast<std::uint32_t>(m), static_cast<std::int64_t>(i - module.down)) - 1.0));
  }
  std::ranges::copy(layer_.head, parameters.begin() + static_cast<std::ptrdiff_t>(head_));
  parameters.back() = layer_.head_bias;
  return parameters;
}

std::uint64_t TunedLayer::text_bytes(std::size_t tokens) const {
  const auto kv = static_cast<std::uint64_t>(2 * kv_width());
  const auto width = static_cast<std::uint64_t>(layer_.width);
  const auto once = 2 * width + static_cast<std::uint64_t>(layer_.query.outputs);
  return sizeof(float) * (tokens * (kv + (needs_inputs() ? width : 0)) + once);
}

// Shares, what comes down beside values with its slope, and of tuned keys that and three forms of them.
std::uint64_t TunedLayer::work_bytes(std::size_t tokens) const {
  const auto kv = static_cast<std::uint64_t>(kv_width());
  const std::uint64_t keys = modules_[kKey].is_tuned ? rank_ + 3 * kv : 0;
  return sizeof(double) * tokens * (static_cast<std::uint64_t>(layer_.heads) + 2 * rank_ + keys);
}

std::int64_t TunedLayer::first_seen() const { return layer_.window > 0 ? std::max<std::int64_t>(0, text_->tokens - layer_.window) : 0; }

void TunedLayer::begin_text(std::vector<float> inputs) {
  given_ = std::move(inputs);
  text_ = &texts_.emplace_back();
  text_->tokens = static_cast<std::int64_t>(given_.size()) / layer_.width;
  const auto tokens = static_cast<std::size_t>(text_->tokens);
  text_->inputs.resize(given_.size());
  text_->keys.resize(tokens * static_cast<std::size_t>(kv_width()));
  text_->values.resize(text_->keys.size());
  text_->query.resize(query_.size());
  running_ = &of_text_;
  running_->begin(text_->tokens);
}

void TunedLayer::plan_text() {
  of_text_.add(Pieces::kEachToken, layer_.width, [this](std::int64_t begin, std::int64_t end) { normalise_inputs(begin, end); });
  of_text_.add(Pieces::kEachToken, layer_.width * kv_width(), [this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) project(layer_.key, token, text_->keys.data() + token * kv_width());
    if (!modules_[kKey].is_tuned) finish_keys(begin, end);
  });
  of_text_.add(Pieces::kEachToken, layer_.width * kv_width(), [this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) project(layer_.value, token, text_->values.data() + token * kv_width());
  });
  of_text_.add(layer_.query.outputs, layer_.width, [this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double bias = layer_.query.bias.empty() ? 0.0 : static_cast<double>(layer_.query.bias[at]);
      text_->query[at] = static_cast<float>(bias + rows::dot(layer_.query.row(i), text_->last(layer_.width), layer_.width));
    }
  });
  of_text_.add(1, layer_.width, [this](std::int64_t, std::int64_t) {
    text_->residual.assign(given_.end() - layer_.width, given_.end());
    given_ = {};
    if (needs_inputs()) return;
    text_->inputs.erase(text_->inputs.begin(), text_->inputs.end() - layer_.width);
    text_->inputs.shrink_to_fit();
  });
}

void TunedLayer::normalise_inputs(std::int64_t begin, std::int64_t end) {
  for (std::int64_t token = begin; token < end; ++token)
    rows::normalise(layer_.attention_norm.weight, layer_.attention_norm.epsilon, given_.data() + token * layer_.width,
                    text_->inputs.data() + token * layer_.width);
}

void TunedLayer::project(const FrozenLinear& linear, std::int64_t token, float* out) const {
  const float* const input = text_->inputs.data() + token * layer_.width;
  for (std::int64_t i = 0; i < linear.outputs; ++i) {
    const double bias = linear.bias.empty() ? 0.0 : static_cast<double>(linear.bias[static_cast<std::size_t>(i)]);
    out[i] = static_cast<float>(bias + rows::dot(linear.row(i), input, linear.inputs));
  }
}

void TunedLayer::finish_keys(std::int64_t begin, std::int64_t end) {
  Row head(static_cast<std::size_t>(layer_.head_dim));
  for (std::int64_t token = begin; token < end; ++token) {
    const Turn turn = turn_of(token);
    for (std::int64_t h = 0; h < layer_.kv_heads; ++h) {
      float* const key = text_->keys.data() + token * kv_width() + h * layer_.head_dim;
      std::copy_n(key, layer_.head_dim, head.data());
      if (!layer_.key_norm.weight.empty()) rows::normalise(layer_.key_norm.weight, layer_.key_norm.epsilon, head.data(), head.data());
      rotate(head.data(), turn, false);
      std::ranges::transform(head, key, [](double x) { return static_cast<float>(x); });
    }
  }
}

TunedLayer::Turn TunedLayer::turn_of(std::int64_t position) const {
  Turn turn;
  if (!layer_.rope) return turn;
  for (std::vector<float>* of : {&turn.cos, &turn.sin}) of->resize(static_cast<std::size_t>(layer_.rope->pairs()));
  layer_.rope->fill(static_cast<std::int32_t>(position), turn.cos.data(), turn.sin.data());
  return turn;
}

// `back`: what the derivatives of a rotated head are before it, by the transposed map.
void TunedLayer::rotate(double* head, const Turn& turn, bool back) const {
  for (std::size_t i = 0; i < turn.cos.size(); ++i) {
    double& a = head[layer_.interleaved ? 2 * i : i];
    double& b = head[layer_.interleaved ? 2 * i + 1 : i + static_cast<std::size_t>(layer_.rotated) / 2];
    const auto c = static_cast<double>(turn.cos[i]);
    const double s = static_cast<double>(turn.sin[i]) * (back ? -1.0 : 1.0);
    const double turned = a * c - b * s;
    b = a * s + b * c;
    a = turned;
  }
}

std::vector<std::pair<std::string, Tensor>> TunedLayer::tensors(std::span<const float> parameters) const {
  std::vector<std::pair<std::string, Tensor>> all;
  const auto add = [&](const std::string& name, TensorShape shape, std::span<const float> values) -> Tensor& {
    Tensor tensor{.type = ElementType::kFloat32, .shape = std::move(shape), .floats = {values.begin(), values.end()}, .integers = {}};
    return all.emplace_back("base_model.model." + name, std::move(tensor)).second;
  };
  for (std::size_t m = 0; m < kModules; ++m) {
    const TunedModule& module = modules_[m];
    if (!module.is_tuned) continue;
    const FrozenLinear& base = *bases()[m];
    const std::span<const float> up = parameters.subspan(module.up, rank_ * static_cast<std::size_t>(base.outputs));
    add(module.name + ".lora_A.weight", {lora_.rank, base.inputs}, parameters.subspan(module.down, module.up - module.down));
    Tensor& placed = add(module.name + ".lora_B.weight", {base.outputs, lora_.rank}, up);
    for (std::size_t row = 0; row < module.order.size(); ++row)
      std::ranges::copy(up.subspan(row * rank_, rank_), placed.floats.begin() + static_cast<std::ptrdiff_t>(rank_) * module.order[row]);
  }
  add("score.weight", {1, layer_.width}, parameters.subspan(head_, static_cast<std::size_t>(layer_.width)));
  add("score.bias", {1}, parameters.last(1));
  return all;
}

}  // namespace braid::model
