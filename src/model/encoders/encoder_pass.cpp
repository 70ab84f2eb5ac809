#include "model/encoders/encoder_pass.h"

#include "model/networks/activations.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::model {
namespace {

// Multiplications of a part: some milliseconds of a small machine.
constexpr std::int64_t kPartWork = std::int64_t{1} << 27;
constexpr std::int64_t kLeastRows = 16;
constexpr std::int64_t kMostRows = 512;
constexpr std::int64_t kRowsOfMember = 8;  // that a member of the team claims at once, where a row is little work

std::vector<TextRows> rows_of(const std::vector<step::EncoderText>& texts) {
  std::vector<TextRows> rows;
  std::int64_t begin = 0;
  for (const step::EncoderText& text : texts) {
    rows.push_back({begin, static_cast<std::int32_t>(text.tokens.size())});
    begin += rows.back().count;
  }
  return rows;
}

std::int64_t work_of(const LayerMatrix& matrix) { return matrix.matrix.outputs * matrix.matrix.inputs; }

bool is_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

float* sized(std::vector<float>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(static_cast<std::size_t>(count));
  return values.data();
}

}  // namespace

TextEncoderPass::TextEncoderPass(const TextEncoder& encoder, std::vector<step::EncoderText> texts)
    : encoder_(encoder), texts_(std::move(texts)), rows_(rows_of(texts_)), count_(rows_.back().begin + rows_.back().count),
      products_(encoder.table(), encoder.team()),
      attention_(encoder.shape(), encoder.score_scale(), encoder.weights().distance_bias, encoder.table(), encoder.team(), rows_) {
  for (std::size_t text = 0; text < rows_.size(); ++text) {
    for (std::int32_t place = 0; place < rows_[text].count; ++place) {
      places_.push_back(place);
      owners_.push_back(text);
    }
  }
  const EncoderShape& shape = encoder.shape();
  x_.resize(static_cast<std::size_t>(count_ * shape.width));
  queries_.resize(static_cast<std::size_t>(count_ * shape.heads * shape.head_dim));
  mixed_.resize(queries_.size());
}

bool TextEncoderPass::advance() {
  const EncoderShape& shape = encoder_.shape();
  const auto run = [&](std::int64_t work, Stage next, auto&& part) {
    const std::int64_t end = std::min(count_, next_row_ + rows_for(work));
    part(next_row_, end);
    next_row_ = end;
    if (end == count_) next_stage(next);
  };
  switch (stage_) {
    case Stage::kEmbed:
      embed();
      next_stage(shape.layers.empty() ? Stage::kPool : Stage::kProject);
      break;
    case Stage::kProject:
      run(work_of(weights().query) + work_of(weights().key) + work_of(weights().value), Stage::kAttend,
          [this](std::int64_t begin, std::int64_t end) { project(begin, end); });
      break;
    case Stage::kAttend:
      attend();
      break;
    case Stage::kJoin:
      run(work_of(weights().out), Stage::kFeed, [this](std::int64_t begin, std::int64_t end) { join(begin, end); });
      break;
    case Stage::kFeed:
      run(weights().experts ? 2 * work_of(weights().experts->up.front()) * layer().experts.used
                            : work_of(weights().gate) + work_of(weights().up) + work_of(weights().down),
          layer_ + 1 < shape.layers.size() ? Stage::kProject : Stage::kPool,
          [this](std::int64_t begin, std::int64_t end) { feed(begin, end); });
      if (stage_ == Stage::kProject) ++layer_;
      break;
    case Stage::kPool:
      pool();
      next_stage(Stage::kDone);
      break;
    case Stage::kDone:
      break;
  }
  return stage_ != Stage::kDone;
}

std::vector<float> TextEncoderPass::take(std::size_t text) { return std::move(results_[text]); }

void TextEncoderPass::next_stage(Stage stage) {
  stage_ = stage;
  next_row_ = 0;
  next_text_ = 0;
}

std::int64_t TextEncoderPass::rows_for(std::int64_t multiplications) const {
  const std::int64_t rows = kPartWork / std::max<std::int64_t>(1, multiplications) / kLeastRows * kLeastRows;
  return std::clamp(rows, kLeastRows, kMostRows);
}

void TextEncoderPass::normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out) {
  const auto epsilon = static_cast<float>(encoder_.shape().epsilon);
  const kernels::KernelTable& table = encoder_.table();
  const auto one = [&](std::int64_t row) {
    if (norm.rms) return table.rms_norm(x + row * width, norm.weight.data(), width, epsilon, out + row * width);
    table.layer_norm(x + row * width, norm.weight.data(), norm.bias.data(), width, epsilon, out + row * width);
  };
  encoder_.team().for_chunks(rows, kRowsOfMember, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) one(row);
  });
}

void TextEncoderPass::embed() {
  const EncoderShape& shape = encoder_.shape();
  const EncoderWeights& weights = encoder_.weights();
  const std::int64_t width = shape.embedded;
  float* const out = shape.embedding_projection ? sized(branch_, count_ * width) : x_.data();
  const auto at = [width](const std::vector<float>& table, std::int64_t row) { return table.data() + row * width; };
  for (std::int64_t row = 0; row < count_; ++row) {
    const std::size_t text = owners_[static_cast<std::size_t>(row)];
    const std::int32_t place = places_[static_cast<std::size_t>(row)];
    float* const to = out + row * width;
    std::copy_n(at(weights.tokens, texts_[text].tokens[static_cast<std::size_t>(place)]), width, to);
    if (shape.embedding_scale != 1.0F)
      for (std::int64_t i = 0; i < width; ++i) to[i] *= shape.embedding_scale;
    if (!weights.types.empty()) {
      const bool second = texts_[text].second_text > 0 && place >= texts_[text].second_text && shape.type_count > 1;
      encoder_.table().add(to, at(weights.types, second ? 1 : 0), width);
    }
    if (!weights.positions.empty()) encoder_.table().add(to, at(weights.positions, shape.first_position + place), width);
  }
  if (weights.embedding_norm) normalise(weights.embedding_norm, out, count_, width, out);
  if (shape.embedding_projection) products_.multiply(weights.embedding_projection, out, count_, x_.data());
}

void TextEncoderPass::rotate(float* x, std::int32_t heads, std::int32_t place, std::int32_t rotary, float* angles) const {
  const RopeTable& table = encoder_.ropes()[static_cast<std::size_t>(rotary)];
  const std::int32_t dims = encoder_.shape().head_dim;
  table.fill(place, angles, angles + table.pairs());
  encoder_.table().rope(x, heads, dims, dims, angles, angles + table.pairs(), false);
}

void TextEncoderPass::project(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = encoder_.shape();
  const std::int64_t rows = end - begin;
  const std::int64_t kv_width = std::int64_t{shape.kv_heads} * shape.head_dim;
  const std::int64_t query_width = std::int64_t{shape.heads} * shape.head_dim;
  const float* x = x_.data() + begin * shape.width;
  if (weights().before_attention) {
    normalise(weights().before_attention, x, rows, shape.width, sized(input_, rows * shape.width));
    x = input_.data();
  }
  float* const queries = queries_.data() + begin * query_width;
  float* const keys = sized(keys_, rows * kv_width);
  float* const values = sized(values_, rows * kv_width);
  products_.multiply(weights().query, x, rows, queries);
  products_.multiply(weights().key, x, rows, keys);
  products_.multiply(weights().value, x, rows, values);
  if (weights().query_norm) normalise(weights().query_norm, queries, rows * shape.heads, shape.head_dim, queries);
  if (weights().key_norm) normalise(weights().key_norm, keys, rows * shape.kv_heads, shape.head_dim, keys);
  encoder_.team().for_chunks(rows, kRowsOfMember, [&](std::int64_t from, std::int64_t to, int) {
    std::vector<float> angles(static_cast<std::size_t>(shape.head_dim));
    for (std::int64_t row = from; row < to; ++row) {
      const std::int32_t place = places_[static_cast<std::size_t>(begin + row)];
      if (!shape.rotary.empty()) {
        rotate(queries + row * query_width, shape.heads, place, layer().rotary, angles.data());
        rotate(keys + row * kv_width, shape.kv_heads, place, layer().rotary, angles.data());
      }
      attention_.store(owners_[static_cast<std::size_t>(begin + row)], place, keys + row * kv_width, values + row * kv_width);
    }
  });
}

// As many texts as a part has room for, or some rows of a long one.
void TextEncoderPass::attend() {
  const EncoderShape& shape = encoder_.shape();
  std::int64_t left = kPartWork;
  while (left > 0 && next_text_ < rows_.size()) {
    const TextRows& text = rows_[next_text_];
    const std::int32_t sees = layer().window > 0 ? std::min(text.count, 2 * layer().window + 1) : text.count;
    const std::int64_t work = std::int64_t{2} * sees * shape.heads * shape.head_dim;
    const auto begin = static_cast<std::int32_t>(next_row_);
    const std::int64_t end = std::min<std::int64_t>(text.count, begin + std::max(kLeastRows, left / work));
    attention_.attend(layer(), next_text_, begin, static_cast<std::int32_t>(end), queries_.data(), mixed_.data());
    left -= work * (end - begin);
    next_row_ = end;
    if (end < text.count) return;
    next_row_ = 0;
    ++next_text_;
  }
  if (next_text_ == rows_.size()) next_stage(Stage::kJoin);
}

void TextEncoderPass::add_branch(const EncoderNormWeights& own, const EncoderNormWeights& joined, float* branch, std::int64_t begin,
                                 std::int64_t rows) {
  const std::int64_t width = encoder_.shape().width;
  float* const x = x_.data() + begin * width;
  if (own) normalise(own, branch, rows, width, branch);
  encoder_.table().add(x, branch, rows * width);
  if (joined) normalise(joined, x, rows, width, x);
}

void TextEncoderPass::join(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = encoder_.shape();
  float* const branch = sized(branch_, (end - begin) * shape.width);
  products_.multiply(weights().out, mixed_.data() + begin * shape.heads * shape.head_dim, end - begin, branch);
  add_branch(weights().after_attention, weights().joined_attention, branch, begin, end - begin);
}

void TextEncoderPass::activate(EncoderActivation activation, float* x, std::int64_t n) const {
  const kernels::KernelTable& table = encoder_.table();
  switch (activation) {
    case EncoderActivation::kNone:
      return;
    case EncoderActivation::kGelu:
      return gelu(table, x, n);
    case EncoderActivation::kGeluTanh:
      return table.gelu(x, n, x);
    case EncoderActivation::kRelu:
      return relu(x, n);
    case EncoderActivation::kSilu:
      return silu(table, x, n);
    case EncoderActivation::kTanh:
      return tanh(table, x, n);
  }
}

void TextEncoderPass::feed(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = encoder_.shape();
  const std::int64_t rows = end - begin;
  const float* x = x_.data() + begin * shape.width;
  if (weights().before_feed_forward) {
    normalise(weights().before_feed_forward, x, rows, shape.width, sized(input_, rows * shape.width));
    x = input_.data();
  }
  float* const branch = sized(branch_, rows * shape.width);
  if (weights().experts) {
    feed_experts(begin, end, x, branch);
  } else {
    const std::int64_t inner = layer().up.outputs;
    const bool gated = layer().gate.outputs > 0;
    float* const up = sized(up_, rows * inner);
    float* const gate = gated ? sized(gate_, rows * inner) : up;
    products_.multiply(weights().up, x, rows, up);
    if (gated) products_.multiply(weights().gate, x, rows, gate);
    encoder_.team().for_chunks(rows, 2, [&](std::int64_t from, std::int64_t to, int) {
      activate(shape.activation, gate + from * inner, (to - from) * inner);
      if (gated)
        for (std::int64_t i = from * inner; i < to * inner; ++i) up[i] *= gate[i];
    });
    products_.multiply(weights().down, up, rows, branch);
  }
  add_branch(weights().after_feed_forward, weights().joined_feed_forward, branch, begin, rows);
}

// A row adds what its experts give in the order of their scores.
void TextEncoderPass::feed_experts(std::int64_t begin, std::int64_t end, const float* x, float* out) {
  const EncoderShape& shape = encoder_.shape();
  const EncoderExpertsWeights& experts = *weights().experts;
  const std::int64_t inner = layer().up.outputs;
  std::vector<float> scores(static_cast<std::size_t>(layer().experts.count));
  std::vector<std::size_t> order(scores.size());
  std::vector<float> up(static_cast<std::size_t>(inner));
  std::vector<float> down(static_cast<std::size_t>(shape.width));
  for (std::int64_t row = 0; row < end - begin; ++row) {
    products_.multiply(experts.router, x + row * shape.width, 1, scores.data());
    softmax(scores.data(), static_cast<std::int64_t>(scores.size()), 1);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    float* const to = out + row * shape.width;
    std::fill_n(to, shape.width, 0.0F);
    for (std::int32_t i = 0; i < layer().experts.used; ++i) {
      const std::size_t expert = order[static_cast<std::size_t>(i)];
      products_.multiply(experts.up[expert], x + row * shape.width, 1, up.data());
      activate(shape.activation, up.data(), inner);
      products_.multiply(experts.down[expert], up.data(), 1, down.data());
      for (std::int64_t c = 0; c < shape.width; ++c) to[c] += scores[expert] * down[static_cast<std::size_t>(c)];
    }
    if (!experts.bias.empty()) encoder_.table().add(to, experts.bias.data(), shape.width);
  }
}

// Sums in the order of positions, in double.
std::vector<float> TextEncoderPass::pooled(const step::EncoderText& text, const TextRows& rows) const {
  const EncoderShape& shape = encoder_.shape();
  const Pooling pooling = text.output == PooledOutput::kScores ? shape.head->pooling : text.pooling;
  const float* const first = x_.data() + rows.begin * shape.width;
  if (pooling == Pooling::kFirst) return {first, first + shape.width};
  if (pooling != Pooling::kMean) return {first + (rows.count - 1) * shape.width, first + rows.count * shape.width};
  std::vector<double> sum(static_cast<std::size_t>(shape.width));
  for (std::int32_t row = 0; row < rows.count; ++row)
    for (std::int64_t i = 0; i < shape.width; ++i) sum[static_cast<std::size_t>(i)] += first[row * shape.width + i];
  std::vector<float> mean(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) mean[i] = static_cast<float>(sum[i] / rows.count);
  return mean;
}

std::vector<float> TextEncoderPass::scores_of(std::vector<float> vector) {
  const EncoderShape& shape = encoder_.shape();
  const EncoderHeadWeights& head = *encoder_.weights().head;
  if (shape.head->dense) {
    std::vector<float> dense(static_cast<std::size_t>(shape.head->dense.outputs));
    products_.multiply(head.dense, vector.data(), 1, dense.data());
    vector = std::move(dense);
  }
  activate(shape.head->activation, vector.data(), static_cast<std::int64_t>(vector.size()));
  if (head.norm) normalise(head.norm, vector.data(), 1, static_cast<std::int64_t>(vector.size()), vector.data());
  std::vector<float> scores(static_cast<std::size_t>(shape.head->out.outputs));
  products_.multiply(head.out, vector.data(), 1, scores.data());
  return scores;
}

void TextEncoderPass::pool() {
  const EncoderShape& shape = encoder_.shape();
  if (const EncoderNormWeights& norm = encoder_.weights().final_norm) normalise(norm, x_.data(), count_, shape.width, x_.data());
  for (std::size_t text = 0; text < texts_.size(); ++text) {
    std::vector<float> vector = pooled(texts_[text], rows_[text]);
    if (texts_[text].output == PooledOutput::kScores) {
      vector = scores_of(std::move(vector));
    } else {
      for (std::size_t i = 0; i < shape.dense.size(); ++i) {
        std::vector<float> dense(static_cast<std::size_t>(shape.dense[i].linear.outputs));
        products_.multiply(encoder_.weights().dense[i], vector.data(), 1, dense.data());
        activate(shape.dense[i].activation, dense.data(), static_cast<std::int64_t>(dense.size()));
        vector = std::move(dense);
      }
    }
    if (!is_finite(vector)) vector.clear();
    results_.push_back(std::move(vector));
  }
}

}  // namespace braid::model
