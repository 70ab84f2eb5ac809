#include "model/workspace.h"

#include "kernels/attention_view.h"

#include <algorithm>
#include <utility>

namespace braid::model {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kLineFloats = kAlignment / sizeof(float);

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Hands out consecutive parts; with no base it only measures.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  void take(T*& part, std::int64_t rows, std::int64_t width) {
    if (base_ != nullptr) part = reinterpret_cast<T*>(base_ + used_);
    used_ += aligned(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width) * sizeof(T));
  }

  void take(Rows& part, std::int64_t rows, std::int64_t width) {
    part.stride = ((width + kLineFloats - 1) / kLineFloats | 1) * kLineFloats;
    take(part.data, rows, part.stride);
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

std::size_t most_prepared(const Weights& weights, const kernels::KernelTable& table, std::int64_t rows) {
  std::size_t most = 0;
  const auto add = [&](const kernels::PackedMatrix& matrix) {
    most = std::max(most, table.prepared_bytes(matrix.type, matrix.inputs, rows));
  };
  add(weights.output);
  for (const LayerWeights& layer : weights.layers) {
    const auto& [query, key, value, output, query_norm, key_norm] = layer.attention;
    for (const auto* linear : {&query, &key, &value, &output}) add(linear->matrix);
    const auto& [gate, up, down] = layer.feed_forward;
    for (const auto* linear : {&gate, &up, &down}) add(linear->matrix);
  }
  return most;
}

// The most that any layer takes.
struct Widths {
  std::int64_t branch = 0;  // with a post-norm or a scale
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t feed_forward = 0;
  std::size_t attention_scratch = 0;
  std::int64_t part = 0;  // floats of one part of all heads
};

Widths widths_of(const ModelShape& model, const kernels::KernelTable& table) {
  Widths most;
  for (const LayerShape& layer : model.layers) {
    const AttentionShape& attention = layer.attention;
    if (layer.residual_scale != 1.0F) most.branch = model.embedding;
    for (const NormShape* norm : {&layer.attention_post_norm, &layer.feed_forward_post_norm})
      if (norm->kind != NormShape::Kind::kNone) most.branch = model.embedding;
    most.query = std::max(most.query, attention.query_width());
    most.key = std::max(most.key, attention.kv_width());
    most.feed_forward = std::max<std::int64_t>(most.feed_forward, layer.feed_forward.width);
    most.attention_scratch = std::max(most.attention_scratch, table.attention_scratch_bytes(attention.heads, attention.head_dim));
    most.part = std::max(most.part, attention.heads * kernels::part_floats(attention.head_dim));
  }
  return most;
}

// Lays the parts out from `base`; with a null base it only measures.
std::size_t carve(Workspace& space, const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, std::byte* base) {
  const Widths widths = widths_of(model, table);
  space.scratch_stride = aligned(std::max(
      static_cast<std::size_t>(std::max<std::int64_t>(model.embedding, widths.feed_forward)) * sizeof(float), widths.attention_scratch));
  Carver carver(base);
  const std::int64_t rows = space.shape.rows;
  space.embedding = model.embedding;
  carver.take(space.residual, rows, model.embedding);
  if (widths.branch > 0) carver.take(space.branch, rows, widths.branch);
  carver.take(space.query, rows, widths.query);
  carver.take(space.key, rows, widths.key);
  carver.take(space.value, rows, widths.key);
  carver.take(space.attended, rows, widths.query);
  carver.take(space.gate, rows, widths.feed_forward);
  carver.take(space.up, rows, widths.feed_forward);
  space.angles.resize(model.rotary.size());
  for (std::size_t i = 0; i < model.rotary.size(); ++i) {
    Angles& angles = space.angles[i];
    angles.pairs = model.rotary[i].rotated / 2;
    carver.take(angles.cos, rows, angles.pairs);
    carver.take(angles.sin, rows, angles.pairs);
  }
  carver.take(space.logits, space.shape.logit_rows, model.vocab);
  const std::int64_t most_rows = std::max<std::int64_t>(rows, space.shape.logit_rows);
  carver.take(space.prepared, 1, static_cast<std::int64_t>(most_prepared(weights, table, most_rows)));
  carver.take(space.attention_rows, rows, 1);
  carver.take(space.tile_begin, rows + 1, 1);
  carver.take(space.part_list, space.shape.parts, 1);
  carver.take(space.part_begin, space.shape.parts + 1, 1);
  carver.take(space.parts, space.shape.parts, widths.part);
  carver.take(space.scratch, space.shape.members, static_cast<std::int64_t>(space.scratch_stride));
  return carver.used();
}

}  // namespace

std::size_t Workspace::bytes(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                             const WorkspaceShape& shape) {
  Workspace space;
  space.shape = shape;
  return carve(space, model, weights, table, nullptr);
}

Result<Workspace> Workspace::create(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                                    const WorkspaceShape& shape, files::HugePages pages) {
  auto storage = files::Mapping::reserve(bytes(model, weights, table, shape), "workspace", pages);
  if (!storage) return storage.error();
  Workspace space;
  space.shape = shape;
  space.storage = std::move(*storage);
  carve(space, model, weights, table, space.storage.data());
  return space;
}

}  // namespace braid::model
