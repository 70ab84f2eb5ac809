#include "model/encoders/encoder_layers.h"

#include "model/networks/activations.h"

#include <algorithm>
#include <utility>

namespace braid::model {
namespace {

constexpr std::int64_t kLeastRows = 16;
constexpr std::int64_t kMostRows = 512;
constexpr std::int64_t kRowsOfMember = 8;  // that a member of the team claims at once, where a row is little work

std::int64_t work_of(const LayerMatrix& matrix) { return matrix.matrix.outputs * matrix.matrix.inputs; }
std::int64_t work_of(const EncoderMatrix& matrix) { return work_of(matrix.base); }

std::int64_t rows_in(const std::vector<TextRows>& texts) { return texts.back().begin + texts.back().count; }

float* sized(std::vector<float>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(static_cast<std::size_t>(count));
  return values.data();
}

}  // namespace

void normalise_rows(const EncoderNormWeights& norm, double epsilon, const float* x, std::int64_t rows, std::int64_t width, float* out,
                    const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  const auto least = static_cast<float>(epsilon);
  const auto one = [&](std::int64_t row) {
    if (norm.rms) return table.rms_norm(x + row * width, norm.weight.data(), width, least, out + row * width);
    table.layer_norm(x + row * width, norm.weight.data(), norm.bias.data(), width, least, out + row * width);
  };
  team.for_chunks(rows, kRowsOfMember, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) one(row);
  });
}

void normalise_adapted(const EncoderNormWeights& norm, double epsilon, const float* x, std::int64_t rows, std::int64_t each,
                       std::int64_t width, float* out, RowAdapters of, const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  const auto is_own = [&](const EncoderAdapterSet* set) { return set == nullptr || &set->norm(norm) == &norm; };
  if (std::ranges::all_of(of, is_own)) return normalise_rows(norm, epsilon, x, rows * each, width, out, table, team);
  for_runs(of, [&](std::int64_t first, std::int64_t end, const EncoderAdapterSet* set) {
    const std::int64_t at = first * each * width;
    normalise_rows(set != nullptr ? set->norm(norm) : norm, epsilon, x + at, (end - first) * each, width, out + at, table, team);
  });
}

void activate(const kernels::KernelTable& table, EncoderActivation activation, float* x, std::int64_t n) {
  constexpr float kQuickSlope = 1.702F;
  switch (activation) {
    case EncoderActivation::kNone:
      return;
    case EncoderActivation::kGelu:
      return gelu(table, x, n);
    case EncoderActivation::kGeluTanh:
      return table.gelu(x, n, x);
    case EncoderActivation::kGeluQuick:
      std::transform(x, x + n, x, [](float value) { return value * kQuickSlope; });
      silu(table, x, n);
      std::transform(x, x + n, x, [](float value) { return value / kQuickSlope; });
      return;
    case EncoderActivation::kRelu:
      return relu(x, n);
    case EncoderActivation::kSilu:
      return silu(table, x, n);
    case EncoderActivation::kTanh:
      return tanh(table, x, n);
  }
}

std::int64_t rows_of_part(std::int64_t multiplications_of_row) {
  const std::int64_t rows = kEncoderPartWork / std::max<std::int64_t>(1, multiplications_of_row) / kLeastRows * kLeastRows;
  return std::clamp(rows, kLeastRows, kMostRows);
}

EncoderLayers::Sight::Sight(const Model& model, std::vector<TextRows> all)
    : texts(std::move(all)), attention(model.shape, model.score_scale, model.distance_bias, model.table, model.team, texts) {
  for (std::size_t text = 0; text < texts.size(); ++text) {
    for (std::int32_t place = 0; place < texts[text].count; ++place) {
      places.push_back(place);
      owners.push_back(text);
    }
  }
}

EncoderLayers::EncoderLayers(const Model& model, std::vector<TextRows> texts, std::vector<TextRows> parts, std::vector<RowAngles> angles,
                             std::vector<std::int32_t> tasks, RowAdapters adapters)
    : model_(model), angles_(std::move(angles)), tasks_(std::move(tasks)), adapters_(adapters), whole_(model, std::move(texts)),
      count_(rows_in(whole_.texts)), products_(model.table, model.team) {
  if (!parts.empty()) parts_.emplace(model, std::move(parts));
  const EncoderShape& shape = model.shape;
  x_.resize(static_cast<std::size_t>(count_ * shape.width));
  queries_.resize(static_cast<std::size_t>(count_ * shape.heads * shape.head_dim));
  mixed_.resize(queries_.size());
  layer_ = model.first;
}

bool EncoderLayers::advance() {
  if (layer_ == end()) return false;
  const auto run = [&](std::int64_t work, Stage next, auto&& part) {
    const std::int64_t end = std::min(count_, next_row_ + rows_of_part(work));
    part(next_row_, end);
    next_row_ = end;
    if (end == count_) next_stage(next);
  };
  switch (stage_) {
    case Stage::kProject:
      run(work_of(weights().query) + work_of(weights().key) + work_of(weights().value), Stage::kAttend,
          [this](std::int64_t begin, std::int64_t end) { project(begin, end); });
      break;
    case Stage::kAttend:
      attend();
      break;
    case Stage::kJoin:
      run(work_of(weights().out), layer().up || weights().experts ? Stage::kFeed : Stage::kProject,
          [this](std::int64_t begin, std::int64_t end) { join(begin, end); });
      if (stage_ == Stage::kProject) ++layer_;
      break;
    case Stage::kFeed:
      run(weights().experts ? 2 * work_of(weights().experts->up.front()) * layer().experts.used
                            : work_of(weights().gate) + work_of(weights().up) + work_of(weights().down),
          Stage::kProject, [this](std::int64_t begin, std::int64_t end) { feed(begin, end); });
      if (stage_ == Stage::kProject) ++layer_;
      break;
  }
  return layer_ < end();
}

void EncoderLayers::next_stage(Stage stage) {
  stage_ = stage;
  next_row_ = 0;
  next_text_ = 0;
}

void EncoderLayers::normalise(const EncoderNormWeights& norm, const float* x, std::int64_t begin, std::int64_t rows, std::int64_t width,
                              float* out, std::int64_t each) {
  normalise_adapted(norm, model_.shape.epsilon, x, rows, each, width, out, adapters_of(begin, rows), model_.table, model_.team);
}

// What a task adds is computed for its rows side by side, as texts lie.
void EncoderLayers::multiply(const EncoderMatrix& matrix, const float* x, std::int64_t begin, std::int64_t rows, float* out) {
  if (const std::optional<EncoderLimits>& limits = matrix.limits) {
    const std::int64_t inputs = rows * matrix.base.matrix.inputs;
    float* const held = sized(held_, inputs);
    std::transform(x, x + inputs, held, [&](float value) { return std::clamp(value, limits->input_min, limits->input_max); });
    products_.multiply(matrix.base, held, rows, out);
    for (float& value : std::span(out, static_cast<std::size_t>(rows * matrix.base.matrix.outputs)))
      value = std::clamp(value, limits->output_min, limits->output_max);
  } else {
    products_.multiply(matrix.base, x, rows, out, adapters_of(begin, rows));
  }
  if (matrix.tasks.empty() || tasks_.empty()) return;
  const auto task_of = [&](std::int64_t row) { return tasks_[static_cast<std::size_t>(begin + row)]; };
  for (std::int64_t first = 0, end = 0; first < rows; first = end) {
    const std::int32_t task = task_of(first);
    for (end = first + 1; end < rows && task_of(end) == task;) ++end;
    if (task == 0) continue;
    products_.add(matrix.tasks[static_cast<std::size_t>(task - 1)], 1.0F, x + first * matrix.base.matrix.inputs, end - first,
                  out + first * matrix.base.matrix.outputs);
  }
}

void EncoderLayers::rotate(float* x, std::int32_t heads, std::int64_t row) const {
  const RowAngles& angles = angles_[static_cast<std::size_t>(layer().rotary)];
  const std::int32_t dims = model_.shape.head_dim;
  model_.table.rope(x, heads, dims, dims, angles.cos.data() + row * angles.pairs, angles.sin.data() + row * angles.pairs, false);
}

void EncoderLayers::project(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = model_.shape;
  const std::int64_t rows = end - begin;
  const std::int64_t kv_width = std::int64_t{shape.kv_heads} * shape.head_dim;
  const std::int64_t query_width = std::int64_t{shape.heads} * shape.head_dim;
  const float* x = x_.data() + begin * shape.width;
  if (weights().before_attention) {
    normalise(weights().before_attention, x, begin, rows, shape.width, sized(input_, rows * shape.width));
    x = input_.data();
  }
  float* const queries = queries_.data() + begin * query_width;
  float* const keys = sized(keys_, rows * kv_width);
  float* const values = sized(values_, rows * kv_width);
  multiply(weights().query, x, begin, rows, queries);
  multiply(weights().key, x, begin, rows, keys);
  multiply(weights().value, x, begin, rows, values);
  const auto normalise_heads = [&](const EncoderNormWeights& norm, float* of, std::int64_t width) {
    const std::int64_t own = shape.norms_all_heads ? width : shape.head_dim;
    if (norm) normalise(norm, of, begin, rows, own, of, width / own);
  };
  normalise_heads(weights().query_norm, queries, query_width);
  normalise_heads(weights().key_norm, keys, kv_width);
  if (const EncoderNormWeights& norm = weights().value_norm) normalise(norm, values, begin, rows, shape.head_dim, values, shape.kv_heads);
  Sight& seen = sight();
  model_.team.for_chunks(rows, kRowsOfMember, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t row = from; row < to; ++row) {
      if (!angles_.empty()) {
        rotate(queries + row * query_width, shape.heads, begin + row);
        rotate(keys + row * kv_width, shape.kv_heads, begin + row);
      }
      const auto index = static_cast<std::size_t>(begin + row);
      seen.attention.store(seen.owners[index], seen.places[index], keys + row * kv_width, values + row * kv_width);
    }
  });
}

// As many texts as a part has room for, or some rows of a long one.
void EncoderLayers::attend() {
  const EncoderShape& shape = model_.shape;
  Sight& seen = sight();
  std::int64_t left = kEncoderPartWork;
  while (left > 0 && next_text_ < seen.texts.size()) {
    const TextRows& text = seen.texts[next_text_];
    const std::int32_t sees = layer().window > 0 ? std::min(text.count, 2 * layer().window + 1) : text.count;
    const std::int64_t work = std::int64_t{2} * sees * shape.heads * shape.head_dim;
    const auto begin = static_cast<std::int32_t>(next_row_);
    const std::int64_t end = std::min<std::int64_t>(text.count, begin + std::max(kLeastRows, left / work));
    seen.attention.attend(layer(), next_text_, begin, static_cast<std::int32_t>(end), queries_.data(), mixed_.data());
    left -= work * (end - begin);
    next_row_ = end;
    if (end < text.count) return;
    next_row_ = 0;
    ++next_text_;
  }
  if (next_text_ == seen.texts.size()) next_stage(Stage::kJoin);
}

void EncoderLayers::add_branch(const EncoderNormWeights& own, const EncoderNormWeights& joined, float* branch, std::int64_t begin,
                               std::int64_t rows) {
  const std::int64_t width = model_.shape.width;
  float* const x = x_.data() + begin * width;
  if (own) normalise(own, branch, begin, rows, width, branch);
  model_.table.add(x, branch, rows * width);
  if (joined) normalise(joined, x, begin, rows, width, x);
}

void EncoderLayers::join(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = model_.shape;
  const std::int64_t rows = end - begin;
  float* const branch = sized(branch_, rows * shape.width);
  multiply(weights().out, mixed_.data() + begin * shape.heads * shape.head_dim, begin, rows, branch);
  float* const before = weights().rejoined_attention ? sized(before_, rows * shape.width) : nullptr;
  if (before != nullptr) std::copy_n(x_.data() + begin * shape.width, rows * shape.width, before);
  add_branch(weights().after_attention, weights().joined_attention, branch, begin, rows);
  if (before != nullptr) add_branch({}, weights().rejoined_attention, before, begin, rows);
}

void EncoderLayers::feed(std::int64_t begin, std::int64_t end) {
  const EncoderShape& shape = model_.shape;
  const std::int64_t rows = end - begin;
  const float* x = x_.data() + begin * shape.width;
  if (weights().before_feed_forward) {
    normalise(weights().before_feed_forward, x, begin, rows, shape.width, sized(input_, rows * shape.width));
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
    multiply(weights().up, x, begin, rows, up);
    if (gated) multiply(weights().gate, x, begin, rows, gate);
    model_.team.for_chunks(rows, 2, [&](std::int64_t from, std::int64_t to, int) {
      activate(model_.table, shape.activation, gate + from * inner, (to - from) * inner);
      if (gated)
        for (std::int64_t i = from * inner; i < to * inner; ++i) up[i] *= gate[i];
    });
    multiply(weights().down, up, begin, rows, branch);
  }
  add_branch(weights().after_feed_forward, weights().joined_feed_forward, branch, begin, rows);
}

// A row adds what its experts give in the order of their scores.
void EncoderLayers::feed_experts(std::int64_t begin, std::int64_t end, const float* x, float* out) {
  const EncoderShape& shape = model_.shape;
  const EncoderExpertsWeights& experts = *weights().experts;
  const std::int64_t inner = layer().up.outputs;
  std::vector<float> scores(static_cast<std::size_t>(layer().experts.count));
  std::vector<std::size_t> order(scores.size());
  std::vector<float> up(static_cast<std::size_t>(inner));
  std::vector<float> down(static_cast<std::size_t>(shape.width));
  for (std::int64_t row = 0; row < end - begin; ++row) {
    products_.multiply(experts.router, x + row * shape.width, 1, scores.data(), adapters_of(begin + row, 1));
    softmax(scores.data(), static_cast<std::int64_t>(scores.size()), 1);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    float* const to = out + row * shape.width;
    std::fill_n(to, shape.width, 0.0F);
    for (std::int32_t i = 0; i < layer().experts.used; ++i) {
      const std::size_t expert = order[static_cast<std::size_t>(i)];
      products_.multiply(experts.up[expert], x + row * shape.width, 1, up.data());
      activate(model_.table, shape.activation, up.data(), inner);
      products_.multiply(experts.down[expert], up.data(), 1, down.data());
      for (std::int64_t c = 0; c < shape.width; ++c) to[c] += scores[expert] * down[static_cast<std::size_t>(c)];
    }
    if (!experts.bias.empty()) model_.table.add(to, experts.bias.data(), shape.width);
  }
}

}  // namespace braid::model
