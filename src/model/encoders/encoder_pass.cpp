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

// Of each row.
std::vector<const EncoderAdapterSet*> adapters_of_rows(const std::vector<step::EncoderText>& texts) {
  std::vector<const EncoderAdapterSet*> sets;
  if (std::ranges::all_of(texts, [](const step::EncoderText& text) { return text.adapter == nullptr; })) return sets;
  for (const step::EncoderText& text : texts)
    sets.insert(sets.end(), text.tokens.size(), static_cast<const EncoderAdapterSet*>(text.adapter.get()));
  return sets;
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
    : encoder_(encoder), texts_(std::move(texts)), rows_(rows_of(texts_)), adapters_(adapters_of_rows(texts_)),
      products_(encoder.table(), encoder.team()),
      layers_(model_of(encoder), rows_, {}, angles_of(encoder, rows_), tasks_of(texts_), adapters_) {}

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

void TextEncoderPass::normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out,
                                RowAdapters of) {
  normalise_adapted(norm, encoder_.shape().epsilon, x, rows, 1, width, out, of, encoder_.table(), encoder_.team());
}

void TextEncoderPass::add_rows(const TaskRows& added, float scale, std::int64_t row, float* to) const {
  const std::int64_t width = encoder_.shape().embedded;
  const std::int64_t rank = static_cast<std::int64_t>(added.directions.size()) / width;
  for (std::int64_t r = 0; r < rank; ++r) {
    const float factor = scale * added.rows[static_cast<std::size_t>(row * rank + r)];
    for (std::int64_t i = 0; i < width; ++i) to[i] += factor * added.directions[static_cast<std::size_t>(r * width + i)];
  }
}

void TextEncoderPass::add_task(const EncoderTable& table, std::size_t text, std::int64_t row, float* to) const {
  if (const std::int32_t task = texts_[text].task; task > 0 && !table.tasks.empty())
    add_rows(table.tasks[static_cast<std::size_t>(task - 1)], 1.0F, row, to);
}

// Adds a row of a table, as the text's adapters have it.
void TextEncoderPass::look_up(const std::vector<float>& rows, const AdaptedTable EncoderAdapter::*adapted, std::size_t text,
                              std::int64_t row, float* to) const {
  const std::int64_t width = encoder_.shape().embedded;
  const EncoderAdapterSet* const set = adapters_of(text);
  const std::vector<float>& whole = set != nullptr && !(set->whole().*adapted).rows.empty() ? (set->whole().*adapted).rows : rows;
  encoder_.table().add(to, whole.data() + row * width, width);
  if (set == nullptr) return;
  for (const EncoderAdapterSet::Part& part : set->parts) add_rows(((*part.adapter).*adapted).low_rank, part.scale, row, to);
}

// A text's row, from the tables.
void TextEncoderPass::embed_token(std::size_t text, std::int32_t place, float* to) const {
  const EncoderShape& shape = encoder_.shape();
  const EncoderWeights& weights = encoder_.weights();
  const std::int64_t width = shape.embedded;
  std::fill_n(to, width, 0.0F);
  const TokenId token = texts_[text].tokens[static_cast<std::size_t>(place)];
  look_up(weights.tokens.rows, &EncoderAdapter::tokens, text, token, to);
  add_task(weights.tokens, text, token, to);
  if (shape.embedding_scale != 1.0F)
    for (std::int64_t i = 0; i < width; ++i) to[i] *= shape.embedding_scale;
  if (!weights.types.rows.empty()) {
    const bool second = texts_[text].second_text > 0 && place >= texts_[text].second_text && shape.type_count > 1;
    look_up(weights.types.rows, &EncoderAdapter::types, text, second ? 1 : 0, to);
    add_task(weights.types, text, second ? 1 : 0, to);
  }
  if (!weights.positions.empty()) look_up(weights.positions, &EncoderAdapter::positions, text, shape.first_position + place, to);
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
  if (weights.embedding_norm) normalise(weights.embedding_norm, out, count, shape.embedded, out, adapters_);
  if (shape.embedding_projection) products_.multiply(weights.embedding_projection, out, count, layers_.rows(), adapters_);
}

const EncoderHead& TextEncoderPass::head_shape_of(std::size_t text) const {
  const EncoderAdapterSet* const set = adapters_of(text);
  return set != nullptr && set->whole().head ? set->whole().head->shape : *encoder_.shape().head;
}

const EncoderHeadWeights& TextEncoderPass::head_of(std::size_t text) const {
  const EncoderAdapterSet* const set = adapters_of(text);
  return set != nullptr && set->whole().head ? set->whole().head->weights : *encoder_.weights().head;
}

// Sums in the order of positions, in double.
std::vector<float> TextEncoderPass::pooled(std::size_t text) {
  const EncoderShape& shape = encoder_.shape();
  const TextRows& rows = rows_[text];
  const Pooling pooling = texts_[text].output == PooledOutput::kScores ? head_shape_of(text).pooling : texts_[text].pooling;
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

std::vector<float> TextEncoderPass::scores_of(std::size_t text, std::vector<float> vector) {
  const EncoderHead& shape = head_shape_of(text);
  const EncoderHeadWeights& head = head_of(text);
  const EncoderAdapterSet* const set = adapters_of(text);
  const RowAdapters own(&set, 1);
  if (shape.dense) {
    std::vector<float> dense(static_cast<std::size_t>(shape.dense.outputs));
    products_.multiply(head.dense, vector.data(), 1, dense.data(), own);
    vector = std::move(dense);
  }
  activate(encoder_.table(), shape.activation, vector.data(), static_cast<std::int64_t>(vector.size()));
  if (head.norm) normalise(head.norm, vector.data(), 1, static_cast<std::int64_t>(vector.size()), vector.data(), own);
  std::vector<float> scores(static_cast<std::size_t>(shape.out.outputs));
  products_.multiply(head.out, vector.data(), 1, scores.data(), own);
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
    normalise(norm, layers_.rows(), layers_.count(), encoder_.shape().width, layers_.rows(), adapters_);
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
    result = scores_of(pooled_, pooled(pooled_));
  } else if (text.pooling == Pooling::kEach) {
    const std::int64_t count = std::min(rows.count - next_row_, rows_of_part());
    const float* const first = layers_.rows() + (rows.begin + next_row_) * encoder_.shape().width;
    const std::vector<float> part = through_dense({first, first + count * encoder_.shape().width});
    result.insert(result.end(), part.begin(), part.end());
    next_row_ += count;
    if (next_row_ < rows.count) return true;
    next_row_ = 0;
  } else {
    result = through_dense(pooled(pooled_));
  }
  if (!is_finite(result)) result.clear();
  return ++pooled_ < texts_.size();
}

}  // namespace braid::model
