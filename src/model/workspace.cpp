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
  for (const LayerWeights& layer : weights.layers)
    for (const auto* matrix : {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.gate, &layer.up, &layer.down})
      add(*matrix);
  return most;
}

// Lays the parts out from `base`; with a null base it only measures.
std::size_t carve(Workspace& space, const HyperParameters& model, const Weights& weights, const kernels::KernelTable& table,
                  std::byte* base) {
  space.scratch_stride = aligned(std::max(static_cast<std::size_t>(std::max(model.embedding, model.feed_forward)) * sizeof(float),
                                          table.attention_scratch_bytes(model.heads, model.head_dim)));
  Carver carver(base);
  const std::int64_t rows = space.shape.rows;
  carver.take(space.residual, rows, model.embedding);
  carver.take(space.query, rows, model.query_width());
  carver.take(space.key, rows, model.kv_width());
  carver.take(space.value, rows, model.kv_width());
  carver.take(space.attended, rows, model.query_width());
  carver.take(space.gate, rows, model.feed_forward);
  carver.take(space.up, rows, model.feed_forward);
  carver.take(space.cos, rows, model.rope.rotated / 2);
  carver.take(space.sin, rows, model.rope.rotated / 2);
  carver.take(space.logits, space.shape.logit_rows, model.vocab);
  const std::int64_t most_rows = std::max<std::int64_t>(rows, space.shape.logit_rows);
  carver.take(space.prepared, 1, static_cast<std::int64_t>(most_prepared(weights, table, most_rows)));
  carver.take(space.attention_rows, rows, 1);
  carver.take(space.tile_begin, rows + 1, 1);
  carver.take(space.part_list, space.shape.parts, 1);
  carver.take(space.part_begin, space.shape.parts + 1, 1);
  carver.take(space.parts, std::int64_t{space.shape.parts} * model.heads, kernels::part_floats(model.head_dim));
  carver.take(space.scratch, space.shape.members, static_cast<std::int64_t>(space.scratch_stride));
  return carver.used();
}

}  // namespace

std::size_t Workspace::bytes(const HyperParameters& model, const Weights& weights, const kernels::KernelTable& table,
                             const WorkspaceShape& shape) {
  Workspace space;
  space.shape = shape;
  return carve(space, model, weights, table, nullptr);
}

Result<Workspace> Workspace::create(const HyperParameters& model, const Weights& weights, const kernels::KernelTable& table,
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
