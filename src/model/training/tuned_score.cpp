// What the parameters make of a text, and the derivatives of that, as loops that can be left.
#include "model/training/row_math.h"
#include "model/training/tuned_layer.h"

#include <algorithm>
#include <cmath>

namespace braid::model {

void TunedLayer::begin_score(std::size_t text, std::span<const float> parameters) {
  text_ = &texts_[text];
  parameters_ = parameters;
  const auto tokens = static_cast<std::size_t>(text_->tokens);
  shares_.assign(static_cast<std::size_t>(layer_.heads) * tokens, 0.0);
  value_mid_.assign(tokens * rank_, 0.0);
  shared_mid_.assign(static_cast<std::size_t>(layer_.heads) * rank_, 0.0);
  if (modules_[kKey].is_tuned) {
    key_mid_.assign(tokens * rank_, 0.0);
    plain_keys_.assign(text_->keys.begin(), text_->keys.end());
    keys_.resize(plain_keys_.size());
  }
  std::copy_n(text_->last(layer_.width), layer_.width, input_.data());
  std::ranges::copy(text_->query, query_.begin());
  running_ = &of_score_;
  running_->begin(text_->tokens);
}

void TunedLayer::begin_slope(double factor, std::span<double> gradient) {
  factor_ = factor;
  gradient_ = gradient;
  value_slope_.assign(value_mid_.size(), 0.0);
  if (modules_[kKey].is_tuned) key_slope_.assign(keys_.size(), 0.0);
  running_ = &of_slope_;
  running_->begin(text_->tokens);
}

void TunedLayer::plan_score() {
  add_lora(linears_.query);
  of_score_.add(1, layer_.query.outputs, [this](std::int64_t, std::int64_t) { turn_query(); });
  if (modules_[kKey].is_tuned)
    of_score_.add(Pieces::kEachToken, lora_.rank * (layer_.width + kv_width()),
                  [this](std::int64_t begin, std::int64_t end) { adapt_keys(begin, end); });
  if (modules_[kValue].is_tuned)
    of_score_.add(Pieces::kEachToken, layer_.width * lora_.rank,
                  [this](std::int64_t begin, std::int64_t end) { lower_values(begin, end); });
  of_score_.add_over_tokens(layer_.heads, 2 * layer_.head_dim, [this](std::int64_t begin, std::int64_t end) { attend(begin, end); });
  add_product(linears_.output);
  of_score_.add(1, layer_.width, [this](std::int64_t, std::int64_t) { end_attention(); });
  add_product(linears_.gate);
  add_product(linears_.up);
  of_score_.add(1, layer_.down.inputs, [this](std::int64_t, std::int64_t) { activate(); });
  add_product(linears_.down);
  of_score_.add(1, layer_.width, [this](std::int64_t, std::int64_t) { end_score(); });
}

void TunedLayer::add_product(Linear& linear) {
  of_score_.add(linear.base.outputs, linear.base.inputs, [&linear](std::int64_t begin, std::int64_t end) {
    const FrozenLinear& base = linear.base;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      linear.y[at] = (base.bias.empty() ? 0.0 : static_cast<double>(base.bias[at])) + rows::dot(base.row(i), linear.x.data(), base.inputs);
    }
  });
  add_lora(linear);
}

void TunedLayer::add_lora(Linear& linear) {
  if (!linear.module.is_tuned) return;
  of_score_.add(1, lora_.rank * (linear.base.inputs + linear.base.outputs), [this, &linear](std::int64_t, std::int64_t) {
    const float* const down = parameters_.data() + linear.module.down;
    const float* const up = parameters_.data() + linear.module.up;
    for (std::size_t r = 0; r < rank_; ++r) linear.mid[r] = rows::dot(down + r * linear.x.size(), linear.x.data(), linear.base.inputs);
    for (std::size_t i = 0; i < linear.y.size(); ++i) linear.y[i] += scale_ * rows::dot(up + i * rank_, linear.mid.data(), lora_.rank);
  });
}

void TunedLayer::turn_query() {
  turned_ = query_;
  const Turn turn = turn_of(text_->tokens - 1);
  for (std::int64_t h = 0; h < layer_.heads; ++h) {
    double* const head = turned_.data() + h * layer_.head_dim;
    if (!layer_.query_norm.weight.empty()) rows::normalise(layer_.query_norm.weight, layer_.query_norm.epsilon, head, head);
    rotate(head, turn, false);
  }
}

void TunedLayer::adapt_keys(std::int64_t begin, std::int64_t end) {
  const float* const down = parameters_.data() + modules_[kKey].down;
  const float* const up = parameters_.data() + modules_[kKey].up;
  for (std::int64_t token = begin; token < end; ++token) {
    double* const mid = key_mid_.data() + token * lora_.rank;
    double* const plain = plain_keys_.data() + token * kv_width();
    for (std::int64_t r = 0; r < lora_.rank; ++r)
      mid[r] = rows::dot(down + r * layer_.width, text_->inputs.data() + token * layer_.width, layer_.width);
    for (std::int64_t i = 0; i < kv_width(); ++i) plain[i] += scale_ * rows::dot(up + i * lora_.rank, mid, lora_.rank);
    const Turn turn = turn_of(token);
    for (std::int64_t first = 0; first < kv_width(); first += layer_.head_dim) {
      double* const key = keys_.data() + token * kv_width() + first;
      std::copy_n(plain + first, layer_.head_dim, key);
      if (!layer_.key_norm.weight.empty()) rows::normalise(layer_.key_norm.weight, layer_.key_norm.epsilon, key, key);
      rotate(key, turn, false);
    }
  }
}

// With a head's key, of which `first` is the first value.
double TunedLayer::times_key(std::int64_t token, std::int64_t first, const double* row) const {
  const std::int64_t at = token * kv_width() + first;
  return modules_[kKey].is_tuned ? rows::dot(keys_.data() + at, row, layer_.head_dim)
                                 : rows::dot(text_->keys.data() + at, row, layer_.head_dim);
}

void TunedLayer::lower_values(std::int64_t begin, std::int64_t end) {
  const float* const down = parameters_.data() + modules_[kValue].down;
  for (std::int64_t token = begin; token < end; ++token)
    for (std::int64_t r = 0; r < lora_.rank; ++r)
      value_mid_[static_cast<std::size_t>(token * lora_.rank + r)] =
          rows::dot(down + r * layer_.width, text_->inputs.data() + token * layer_.width, layer_.width);
}

void TunedLayer::attend(std::int64_t begin, std::int64_t end) {
  const std::int64_t dim = layer_.head_dim;
  for (std::int64_t h = begin; h < end; ++h) {
    const std::int64_t first = h / (layer_.heads / layer_.kv_heads) * dim;  // of its keys and values
    double* const shares = shares_.data() + h * text_->tokens;
    double most = -INFINITY;
    for (std::int64_t t = first_seen(); t < text_->tokens; ++t) {
      shares[t] = layer_.score_scale * times_key(t, first, turned_.data() + h * dim);
      most = std::max(most, shares[t]);
    }
    double sum = 0.0;
    for (std::int64_t t = first_seen(); t < text_->tokens; ++t) sum += shares[t] = rows::exp_of(shares[t] - most);
    double* const out = attended_.data() + h * dim;
    std::fill_n(out, dim, 0.0);
    double* const mid = shared_mid_.data() + h * lora_.rank;
    for (std::int64_t t = first_seen(); t < text_->tokens; ++t) {
      shares[t] /= sum;
      rows::add(shares[t], text_->values.data() + t * kv_width() + first, out, dim);
      rows::add(shares[t], value_mid_.data() + t * lora_.rank, mid, lora_.rank);
    }
    if (!modules_[kValue].is_tuned) continue;
    const float* const up = parameters_.data() + modules_[kValue].up + static_cast<std::size_t>(first) * rank_;
    for (std::int64_t d = 0; d < dim; ++d) out[d] += scale_ * rows::dot(up + d * lora_.rank, mid, lora_.rank);
  }
}

void TunedLayer::end_attention() {
  for (std::size_t i = 0; i < stream_.size(); ++i)
    stream_[i] = static_cast<double>(text_->residual[i]) + layer_.residual_scale * attention_[i];
  rows::normalise(layer_.feed_forward_norm.weight, layer_.feed_forward_norm.epsilon, stream_.data(), hidden_.data());
}

void TunedLayer::activate() {
  for (std::size_t i = 0; i < gate_.size(); ++i)
    activated_[i] = (layer_.tanh_gelu ? rows::tanh_gelu(gate_[i]) : rows::silu(gate_[i])).value * up_[i];
}

void TunedLayer::end_score() {
  for (std::size_t i = 0; i < end_.size(); ++i) end_[i] = stream_[i] + layer_.residual_scale * down_[i];
  rows::normalise(layer_.output_norm.weight, layer_.output_norm.epsilon, end_.data(), final_.data());
  score_ = static_cast<double>(parameters_.back()) + rows::dot(parameters_.data() + head_, final_.data(), layer_.width);
}

void TunedLayer::plan_slope() {
  of_slope_.add(1, layer_.width, [this](std::int64_t, std::int64_t) { begin_slopes(); });
  add_product_slope(linears_.down);
  of_slope_.add(1, layer_.down.inputs, [this](std::int64_t, std::int64_t) { activate_slope(); });
  add_product_slope(linears_.up);
  add_product_slope(linears_.gate);
  of_slope_.add(1, layer_.width, [this](std::int64_t, std::int64_t) { end_attention_slope(); });
  add_product_slope(linears_.output);
  of_slope_.add_over_tokens(layer_.heads, 2 * layer_.head_dim, [this](std::int64_t begin, std::int64_t end) { attend_slope(begin, end); });
  if (modules_[kValue].is_tuned)
    of_slope_.add(Pieces::kEachToken, layer_.width * lora_.rank, [this](std::int64_t begin, std::int64_t end) { value_slope(begin, end); });
  if (modules_[kKey].is_tuned)
    of_slope_.add(Pieces::kEachToken, lora_.rank * (layer_.width + 2 * kv_width()),
                  [this](std::int64_t begin, std::int64_t end) { key_slope(begin, end); });
  of_slope_.add(1, layer_.query.outputs, [this](std::int64_t, std::int64_t) { turn_query_slope(); });
  add_lora_slope(linears_.query);
}

void TunedLayer::add_product_slope(Linear& linear) {
  of_slope_.add(linear.base.outputs, linear.base.inputs, [&linear](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      rows::add(linear.y_slope[static_cast<std::size_t>(i)], linear.base.row(i), linear.x_slope.data(), linear.base.inputs);
  });
  add_lora_slope(linear);
}

void TunedLayer::add_lora_slope(Linear& linear) {
  if (!linear.module.is_tuned) return;
  of_slope_.add(1, 2 * lora_.rank * (linear.base.inputs + linear.base.outputs), [this, &linear](std::int64_t, std::int64_t) {
    const float* const down = parameters_.data() + linear.module.down;
    const float* const up = parameters_.data() + linear.module.up;
    Row mid_slope(rank_, 0.0);
    for (std::size_t i = 0; i < linear.y_slope.size(); ++i) {
      const double slope = scale_ * linear.y_slope[i];
      rows::add(slope, up + i * rank_, mid_slope.data(), lora_.rank);
      rows::add(slope, linear.mid.data(), gradient_.data() + linear.module.up + i * rank_, lora_.rank);
    }
    for (std::size_t r = 0; r < rank_; ++r) {
      rows::add(mid_slope[r], linear.x.data(), gradient_.data() + linear.module.down + r * linear.x.size(), linear.base.inputs);
      rows::add(mid_slope[r], down + r * linear.x.size(), linear.x_slope.data(), linear.base.inputs);
    }
  });
}

void TunedLayer::begin_slopes() {
  for (Row* row : {&input_slope_, &query_slope_, &turned_slope_, &attended_slope_, &hidden_slope_, &activated_slope_, &end_slope_})
    std::ranges::fill(*row, 0.0);
  rows::add(factor_, final_.data(), gradient_.data() + head_, layer_.width);
  gradient_.back() += factor_;
  Row final_slope(final_.size(), 0.0);
  rows::add(factor_, parameters_.data() + head_, final_slope.data(), layer_.width);
  rows::add_normalise_slope(layer_.output_norm.weight, layer_.output_norm.epsilon, end_.data(), final_slope.data(), end_slope_.data());
  for (std::size_t i = 0; i < end_slope_.size(); ++i) down_slope_[i] = layer_.residual_scale * end_slope_[i];
}

void TunedLayer::activate_slope() {
  for (std::size_t i = 0; i < gate_.size(); ++i) {
    const rows::Activated activated = layer_.tanh_gelu ? rows::tanh_gelu(gate_[i]) : rows::silu(gate_[i]);
    up_slope_[i] = activated.value * activated_slope_[i];
    gate_slope_[i] = activated.slope * up_[i] * activated_slope_[i];
  }
}

void TunedLayer::end_attention_slope() {
  stream_slope_ = end_slope_;
  rows::add_normalise_slope(layer_.feed_forward_norm.weight, layer_.feed_forward_norm.epsilon, stream_.data(), hidden_slope_.data(),
                            stream_slope_.data());
  for (std::size_t i = 0; i < stream_slope_.size(); ++i) attention_slope_[i] = layer_.residual_scale * stream_slope_[i];
}

void TunedLayer::attend_slope(std::int64_t begin, std::int64_t end) {
  const std::int64_t dim = layer_.head_dim;
  Row share_slope(static_cast<std::size_t>(text_->tokens));
  Row mid_slope(rank_);
  for (std::int64_t h = begin; h < end; ++h) {
    const std::int64_t first = h / (layer_.heads / layer_.kv_heads) * dim;
    const double* const shares = shares_.data() + h * text_->tokens;
    const double* const slope = attended_slope_.data() + h * dim;
    std::ranges::fill(mid_slope, 0.0);
    if (modules_[kValue].is_tuned) {
      const std::size_t up = modules_[kValue].up + static_cast<std::size_t>(first) * rank_;
      for (std::int64_t d = 0; d < dim; ++d) {
        rows::add(scale_ * slope[d], parameters_.data() + up + d * lora_.rank, mid_slope.data(), lora_.rank);
        rows::add(scale_ * slope[d], shared_mid_.data() + h * lora_.rank, gradient_.data() + up + d * lora_.rank, lora_.rank);
      }
    }
    double mean = 0.0;
    for (std::int64_t t = first_seen(); t < text_->tokens; ++t) {
      double& of_share = share_slope[static_cast<std::size_t>(t)];
      of_share = rows::dot(text_->values.data() + t * kv_width() + first, slope, dim) +
                 rows::dot(value_mid_.data() + t * lora_.rank, mid_slope.data(), lora_.rank);
      mean += shares[t] * of_share;
      rows::add(shares[t], mid_slope.data(), value_slope_.data() + t * lora_.rank, lora_.rank);
    }
    for (std::int64_t t = first_seen(); t < text_->tokens; ++t) {
      const double of_score = layer_.score_scale * shares[t] * (share_slope[static_cast<std::size_t>(t)] - mean);
      const std::int64_t key = t * kv_width() + first;
      if (!modules_[kKey].is_tuned) {
        rows::add(of_score, text_->keys.data() + key, turned_slope_.data() + h * dim, dim);
        continue;
      }
      rows::add(of_score, keys_.data() + key, turned_slope_.data() + h * dim, dim);
      rows::add(of_score, turned_.data() + h * dim, key_slope_.data() + key, dim);
    }
  }
}

void TunedLayer::value_slope(std::int64_t begin, std::int64_t end) {
  double* const down = gradient_.data() + modules_[kValue].down;
  for (std::int64_t token = begin; token < end; ++token)
    for (std::int64_t r = 0; r < lora_.rank; ++r)
      rows::add(value_slope_[static_cast<std::size_t>(token * lora_.rank + r)], text_->inputs.data() + token * layer_.width,
                down + r * layer_.width, layer_.width);
}

void TunedLayer::key_slope(std::int64_t begin, std::int64_t end) {
  const float* const up = parameters_.data() + modules_[kKey].up;
  double* const down_slope = gradient_.data() + modules_[kKey].down;
  double* const up_slope = gradient_.data() + modules_[kKey].up;
  Row plain_slope(static_cast<std::size_t>(kv_width()));
  Row mid_slope(rank_);
  for (std::int64_t token = std::max(begin, first_seen()); token < end; ++token) {
    const Turn turn = turn_of(token);
    std::ranges::fill(plain_slope, 0.0);
    for (std::int64_t first = 0; first < kv_width(); first += layer_.head_dim) {
      const std::int64_t at = token * kv_width() + first;
      double* const slope = key_slope_.data() + at;
      rotate(slope, turn, true);
      if (layer_.key_norm.weight.empty()) {
        rows::add(1.0, slope, plain_slope.data() + first, layer_.head_dim);
      } else {
        rows::add_normalise_slope(layer_.key_norm.weight, layer_.key_norm.epsilon, plain_keys_.data() + at, slope,
                                  plain_slope.data() + first);
      }
    }
    std::ranges::fill(mid_slope, 0.0);
    for (std::int64_t i = 0; i < kv_width(); ++i) {
      const double slope = scale_ * plain_slope[static_cast<std::size_t>(i)];
      rows::add(slope, up + i * lora_.rank, mid_slope.data(), lora_.rank);
      rows::add(slope, key_mid_.data() + token * lora_.rank, up_slope + i * lora_.rank, lora_.rank);
    }
    for (std::int64_t r = 0; r < lora_.rank; ++r)
      rows::add(mid_slope[static_cast<std::size_t>(r)], text_->inputs.data() + token * layer_.width, down_slope + r * layer_.width,
                layer_.width);
  }
}

void TunedLayer::turn_query_slope() {
  const Turn turn = turn_of(text_->tokens - 1);
  for (std::int64_t h = 0; h < layer_.heads; ++h) {
    const std::int64_t at = h * layer_.head_dim;
    rotate(turned_slope_.data() + at, turn, true);
    if (layer_.query_norm.weight.empty()) {
      rows::add(1.0, turned_slope_.data() + at, query_slope_.data() + at, layer_.head_dim);
    } else {
      rows::add_normalise_slope(layer_.query_norm.weight, layer_.query_norm.epsilon, query_.data() + at, turned_slope_.data() + at,
                                query_slope_.data() + at);
    }
  }
}

}  // namespace braid::model
