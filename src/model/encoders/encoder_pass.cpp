#include "model/encoders/encoder_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::model {
namespace {

std::vector<TextRows> rows_of(const std::vector<step::EncoderText>& texts) {
  std::vector<TextRows> rows;
  std::int64_t begin = 0;
  for (const step::EncoderText& text : texts) {
    rows.push_back({begin, static_cast<std::int32_t>(text.tokens.size())});
    begin += rows.back().count;
  }
  return rows;
}

std::vector<RowAngles> angles_of(const TextEncoder& encoder, const std::vector<TextRows>& texts) {
  std::vector<RowAngles> all;
  for (const RopeTable& table : encoder.ropes()) {
    RowAngles& angles = all.emplace_back();
    angles.pairs = table.pairs();
    const std::int64_t rows = texts.back().begin + texts.back().count;
    angles.cos.resize(static_cast<std::size_t>(rows * angles.pairs));
    angles.sin.resize(angles.cos.size());
    for (const TextRows& text : texts)
      for (std::int32_t place = 0; place < text.count; ++place) {
        const std::int64_t at = (text.begin + place) * angles.pairs;
        table.fill(place, angles.cos.data() + at, angles.sin.data() + at);
      }
  }
  return all;
}

// Of each row.
std::vector<std::int32_t> tasks_of(const std::vector<step::EncoderText>& texts) {
  std::vector<std::int32_t> tasks;
  for (const step::EncoderText& text : texts) tasks.insert(tasks.end(), text.tokens.size(), text.task);
  return tasks;
}

EncoderLayers::Model model_of(const TextEncoder& encoder) {
  return {.shape = encoder.shape(),
          .weights = encoder.weights().layers,
          .distance_bias = encoder.weights().distance_bias,
          .score_scale = encoder.score_scale(),
          .table = encoder.table(),
          .team = encoder.team()};
}

bool is_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

TextEncoderPass::TextEncoderPass(const TextEncoder& encoder, std::vector<step::EncoderText> texts)
    : encoder_(encoder), texts_(std::move(texts)), rows_(rows_of(texts_)), products_(encoder.table(), encoder.team()),
      layers_(model_of(encoder), rows_, {}, angles_of(encoder, rows_), tasks_of(texts_)) {}

bool TextEncoderPass::advance() {
  switch (stage_) {
    case Stage::kEmbed:
      embed();
      stage_ = encoder_.shape().layers.empty() ? Stage::kNormalise : Stage::kLayers;
      break;
    case Stage::kLayers:
      if (!layers_.advance()) stage_ = Stage::kNormalise;
      break;
    case Stage::kNormalise:
      normalise_all();
      results_.resize(texts_.size());
      stage_ = Stage::kPool;
      break;
    case Stage::kPool:
      if (!pool_next()) stage_ = Stage::kDone;
      break;
    case Stage::kDone:
      break;
  }
  return stage_ != Stage::kDone;
}

std::vector<float> TextEncoderPass::take(std::size_t text) { return std::move(results_[text]); }

void TextEncoderPass::normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out) {
  normalise_rows(norm, encoder_.shape().epsilon, x, rows, width, out, encoder_.table(), encoder_.team());
}

// Adds a row of a table.
void TextEncoderPass::look_up(const EncoderTable& table, std::int64_t row, std::int32_t task, float* to) const {
  const std::int64_t width = encoder_.shape().embedded;
  encoder_.table().add(to, table.rows.data() + row * width, width);
  if (task == 0 || table.tasks.empty()) return;
  const TaskRows& own = table.tasks[static_cast<std::size_t>(task - 1)];
  const std::int64_t rank = encoder_.shape().task_rank;
  for (std::int64_t r = 0; r < rank; ++r) {
    const float factor = own.rows[static_cast<std::size_t>(row * rank + r)];
    for (std::int64_t i = 0; i < width; ++i) to[i] += factor * own.directions[static_cast<std::size_t>(r * width + i)];
  }
}

// A text's row, from the tables.
void TextEncoderPass::embed_token(std::size_t text, std::int32_t place, float* to) const {
  const EncoderShape& shape = encoder_.shape();
  const EncoderWeights& weights = encoder_.weights();
  const std::int64_t width = shape.embedded;
  const std::int32_t task = texts_[text].task;
  std::fill_n(to, width, 0.0F);
  look_up(weights.tokens, texts_[text].tokens[static_cast<std::size_t>(place)], task, to);
  if (shape.embedding_scale != 1.0F)
    for (std::int64_t i = 0; i < width; ++i) to[i] *= shape.embedding_scale;
  if (!weights.types.rows.empty()) {
    const bool second = texts_[text].second_text > 0 && place >= texts_[text].second_text && shape.type_count > 1;
    look_up(weights.types, second ? 1 : 0, task, to);
  }
  if (!weights.positions.empty()) encoder_.table().add(to, weights.positions.data() + (shape.first_position + place) * width, width);
}

void TextEncoderPass::embed() {
  const EncoderShape& shape = encoder_.shape();
  const EncoderWeights& weights = encoder_.weights();
  const std::int64_t count = layers_.count();
  std::vector<float> own;
  if (shape.embedding_projection) own.resize(static_cast<std::size_t>(count * shape.embedded));
  float* const out = shape.embedding_projection ? own.data() : layers_.rows();
  for (std::size_t text = 0; text < rows_.size(); ++text)
    for (std::int32_t place = 0; place < rows_[text].count; ++place)
      embed_token(text, place, out + (rows_[text].begin + place) * shape.embedded);
  if (weights.embedding_norm) normalise(weights.embedding_norm, out, count, shape.embedded, out);
  if (shape.embedding_projection) products_.multiply(weights.embedding_projection, out, count, layers_.rows());
}

// Sums in the order of positions, in double.
std::vector<float> TextEncoderPass::pooled(const step::EncoderText& text, const TextRows& rows) {
  const EncoderShape& shape = encoder_.shape();
  const Pooling pooling = text.output == PooledOutput::kScores ? shape.head->pooling : text.pooling;
  const float* const first = layers_.rows() + rows.begin * shape.width;
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
  activate(encoder_.table(), shape.head->activation, vector.data(), static_cast<std::int64_t>(vector.size()));
  if (head.norm) normalise(head.norm, vector.data(), 1, static_cast<std::int64_t>(vector.size()), vector.data());
  std::vector<float> scores(static_cast<std::size_t>(shape.head->out.outputs));
  products_.multiply(head.out, vector.data(), 1, scores.data());
  return scores;
}

// Of each of the vectors, which lie one after the other.
std::vector<float> TextEncoderPass::through_dense(std::vector<float> vectors) {
  const EncoderShape& shape = encoder_.shape();
  for (std::size_t i = 0; i < shape.dense.size(); ++i) {
    const EncoderLinear& linear = shape.dense[i].linear;
    const std::int64_t count = static_cast<std::int64_t>(vectors.size()) / linear.inputs;
    std::vector<float> dense(static_cast<std::size_t>(count * linear.outputs));
    products_.multiply(encoder_.weights().dense[i], vectors.data(), count, dense.data());
    activate(encoder_.table(), shape.dense[i].activation, dense.data(), static_cast<std::int64_t>(dense.size()));
    vectors = std::move(dense);
  }
  return vectors;
}

void TextEncoderPass::normalise_all() {
  if (const EncoderNormWeights& norm = encoder_.weights().final_norm)
    normalise(norm, layers_.rows(), layers_.count(), encoder_.shape().width, layers_.rows());
}

// Of Dense modules.
std::int64_t TextEncoderPass::rows_of_part() const {
  std::int64_t work = encoder_.shape().width;  // is copied
  for (const EncoderDense& dense : encoder_.shape().dense) work += dense.linear.inputs * dense.linear.outputs;
  return std::max<std::int64_t>(1, kEncoderPartWork / work);
}

// What is wanted of the next text, or of the next of its rows. False: that was the last one.
bool TextEncoderPass::pool_next() {
  const step::EncoderText& text = texts_[pooled_];
  const TextRows& rows = rows_[pooled_];
  std::vector<float>& result = results_[pooled_];
  if (text.output == PooledOutput::kScores) {
    result = scores_of(pooled(text, rows));
  } else if (text.pooling == Pooling::kEach) {
    const std::int64_t count = std::min(rows.count - next_row_, rows_of_part());
    const float* const first = layers_.rows() + (rows.begin + next_row_) * encoder_.shape().width;
    const std::vector<float> part = through_dense({first, first + count * encoder_.shape().width});
    result.insert(result.end(), part.begin(), part.end());
    next_row_ += count;
    if (next_row_ < rows.count) return true;
    next_row_ = 0;
  } else {
    result = through_dense(pooled(text, rows));
  }
  if (!is_finite(result)) result.clear();
  return ++pooled_ < texts_.size();
}

}  // namespace braid::model
