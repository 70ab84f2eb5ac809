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

// Of `places` rows that lie in parts of any sizes, each part prepared for itself: rows may be prepared in tiles, of which a part leaves most
// empty when it has one row more than whole tiles take.
std::size_t prepared_in_parts(const kernels::PackedMatrix& matrix, const kernels::KernelTable& table, std::int64_t places,
                              std::int64_t experts) {
  constexpr std::int64_t kManyRows = 64;
  std::size_t most_each = 0;
  for (std::int64_t rows = 1; rows <= kManyRows; ++rows)
    most_each = std::max(most_each, table.prepared_bytes(matrix.type, matrix.inputs, rows) / static_cast<std::size_t>(rows) + 1);
  return most_each * static_cast<std::size_t>(places) + kAlignment * static_cast<std::size_t>(std::min(places, experts));
}

// Of any number of rows up to `rows`.
std::size_t most_stride(const kernels::PackedMatrix& matrix, const kernels::KernelTable& table, std::int64_t rows) {
  std::size_t most = 0;
  for (std::int64_t count = 1; count <= rows; ++count) most = std::max(most, prepared_stride(table, matrix, count));
  return most;
}

std::size_t most_prepared(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, std::int64_t rows) {
  std::size_t most = 0;
  const auto add = [&](const kernels::PackedMatrix& matrix) {
    most = std::max(most, table.prepared_bytes(matrix.type, matrix.inputs, rows));
  };
  add(weights.output);
  add(weights.prediction.join.matrix);
  add(weights.layer_inputs.projection.matrix);
  for (const auto* all : {&weights.stream_begin, &weights.stream_end})
    for (const LinearWeights& linear : *all) add(linear.matrix);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    const auto& [query, key, value, output, attention_gate, query_norm, key_norm, value_norm, sinks, latent] = layer.attention;
    const DeltaRuleWeights& delta = layer.delta;
    for (const auto* linear :
         {&query, &key, &value, &output, &attention_gate, &layer.convolution.input, &layer.convolution.output, &layer.selective.input,
          &layer.selective.output, &delta.input, &delta.gate, &delta.beta, &delta.decay, &delta.output})
      add(linear->matrix);
    add(latent.query_down.matrix);
    for (const auto* heads : {&latent.key_up, &latent.value_up})
      if (!heads->empty()) most = std::max(most, heads->size() * most_stride(heads->front().matrix, table, rows));
    for (const auto* linear : {&layer.learned_residual.down, &layer.learned_residual.up, &layer.input.down, &layer.input.up})
      add(linear->matrix);
    const auto& [gate, up, down] = layer.feed_forward;
    for (const auto* linear : {&gate, &up, &down}) add(linear->matrix);
    if (!model.layers[i].experts) continue;
    const RouterShape& router = model.layers[i].experts->router;
    for (const auto* linear : {&layer.experts.router, &layer.experts.latent_down, &layer.experts.latent_up}) add(linear->matrix);
    const FeedForwardWeights& first = layer.experts.each.front();
    for (const auto* linear : {&first.gate, &first.up, &first.down})
      if (linear->matrix.inputs > 0)
        most = std::max(most, prepared_in_parts(linear->matrix, table, rows * router.chosen, router.experts()));
  }
  return most;
}

// The most that any layer takes.
struct Widths {
  std::int64_t branch = 0;  // with a post-norm or a scale
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t mixed = 0;
  std::int64_t convolved = 0;
  std::int64_t state_gate = 0;
  std::int64_t delta_heads = 0;
  std::int64_t head_state = 0;  // floats of one head's
  std::int64_t attention_gate = 0;
  std::int64_t attended = 0;
  std::int64_t feed_forward = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
  std::int64_t expert = 0;  // one of them
  std::int64_t latent = 0;  // what they read, where that is no row
  std::int64_t narrow_query = 0;
  std::int64_t head_queries = 0;
  std::int64_t latent_values = 0;
  std::int64_t latent_heads = 0;
  std::int64_t narrow = 0;            // of a layer's input or a learned residual
  std::int64_t learned_residual = 0;  // the stream's width
  std::int64_t shared = 0;            // likewise, of a branch beside experts
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
    if (layer.convolution) {
      most.mixed = std::max<std::int64_t>(most.mixed, layer.convolution->input.outputs);
      most.attended = std::max<std::int64_t>(most.attended, layer.convolution->width);
    }
    if (layer.selective) {
      most.mixed = std::max<std::int64_t>(most.mixed, layer.selective->input.outputs);
      most.convolved = std::max(most.convolved, layer.selective->convolved());
      most.attended = std::max(most.attended, layer.selective->inner());
      most.head_state = std::max(most.head_state, std::int64_t{layer.selective->head_dim} * layer.selective->state);
    }
    if (layer.delta) {
      most.mixed = std::max(most.mixed, layer.delta->convolved());
      most.convolved = std::max(most.convolved, layer.delta->convolved());
      most.state_gate = std::max(most.state_gate, layer.delta->inner());
      most.delta_heads = std::max<std::int64_t>(most.delta_heads, layer.delta->heads);
      most.attended = std::max(most.attended, layer.delta->inner());
      most.head_state = std::max(most.head_state, std::int64_t{layer.delta->key_dim} * layer.delta->value_dim);
    }
    most.attention_gate = std::max(most.attention_gate, attention.gate.outputs);
    most.attended = std::max(most.attended, attention.query_width());
    most.query = std::max(most.query, attention.query_width());
    most.key = std::max(most.key, attention.kv_width());
    most.feed_forward = std::max<std::int64_t>(most.feed_forward, layer.feed_forward.width);
    if (attention.latent) {
      const LatentShape& latent = *attention.latent;
      const std::int64_t heads = attention.heads;
      most.narrow_query = std::max(most.narrow_query, latent.query_down.outputs);
      most.head_queries = std::max(most.head_queries, heads * (latent.plain + latent.rotated));
      most.latent_values = std::max(most.latent_values, heads * latent.value_dim);
      most.latent_heads = std::max(most.latent_heads, heads);
    }
    if (layer.input) {
      most.branch = model.embedding;
      most.narrow = std::max(most.narrow, layer.input->down.outputs);
    }
    if (layer.learned_residual) {
      most.branch = most.learned_residual = model.embedding;
      most.narrow = std::max(most.narrow, layer.learned_residual->down.outputs);
    }
    if (layer.experts) {
      most.branch = model.embedding;
      if (layer.experts->own_norm.kind != NormShape::Kind::kNone) most.shared = model.embedding;
      most.experts = std::max<std::int64_t>(most.experts, layer.experts->router.experts());
      most.chosen = std::max<std::int64_t>(most.chosen, layer.experts->router.chosen);
      most.expert = std::max<std::int64_t>(most.expert, layer.experts->each.width);
      most.latent = std::max(most.latent, layer.experts->latent());
    }
    if (attention.heads == 0) continue;
    most.attention_scratch =
        std::max(most.attention_scratch, table.attention_scratch_bytes(attention.heads, attention.head_dim, attention.latent.has_value()));
    most.part = std::max(most.part, attention.heads * kernels::part_floats(attention.head_dim));
  }
  return most;
}

void carve_experts(Workspace& space, Carver& carver, const Widths& widths) {
  const std::int64_t rows = space.shape.rows;
  const std::int64_t places = rows * widths.chosen;
  carver.take(space.normed, rows, space.embedding);
  if (widths.shared > 0) carver.take(space.shared, rows, widths.shared);
  carver.take(space.scores, rows, widths.experts);
  carver.take(space.expert_gate, places, widths.expert);
  carver.take(space.expert_up, places, widths.expert);
  carver.take(space.expert_out, places, std::max(space.embedding, widths.latent));
  if (widths.latent > 0) {
    carver.take(space.latent_rows, rows, widths.latent);
    carver.take(space.latent_sums, rows, widths.latent);
  }
  carver.take(space.routes.choices, rows, widths.chosen);
  carver.take(space.routes.place_of, rows, widths.chosen);
  carver.take(space.routes.row_of, places, 1);
  carver.take(space.routes.expert_of, places, 1);
  carver.take(space.routes.begin, widths.experts + 1, 1);
  carver.take(space.routes.prepared_at, widths.experts, 1);
  carver.take(space.routes.products, widths.experts, 2);
}

// What each layer with a state reads of guesses.
void carve_kept(Workspace& space, Carver& carver, const ModelShape& model) {
  space.kept.resize(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerShape& layer = model.layers[i];
    if (!layer.carries_state()) continue;
    const std::int64_t width = layer.convolution ? layer.convolution->input.outputs
                               : layer.selective ? layer.selective->input.outputs
                                                 : layer.delta->convolved();
    carver.take(space.kept[i].mixed, space.shape.drafts, width);
    if (!layer.delta) continue;
    carver.take(space.kept[i].betas, space.shape.drafts, layer.delta->heads);
    carver.take(space.kept[i].decays, space.shape.drafts, layer.delta->heads);
  }
}

// Lays the parts out from `base`; with a null base it only measures.
std::size_t carve(Workspace& space, const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, std::byte* base) {
  const Widths widths = widths_of(model, table);
  const std::int64_t scratch_floats = std::max(
      {std::int64_t{model.embedding}, model.layer_inputs ? model.layer_inputs->projection.outputs : 0, widths.feed_forward, widths.expert,
       2 * widths.experts, widths.narrow_query, widths.attention_gate, space.shape.drafts > 0 ? widths.head_state : 0});
  space.scratch_stride = aligned(std::max(static_cast<std::size_t>(scratch_floats) * sizeof(float), widths.attention_scratch));
  Carver carver(base);
  const std::int64_t rows = space.shape.rows;
  space.embedding = model.embedding;
  carver.take(space.residual, rows, model.embedding);
  if (std::ranges::any_of(model.layers, &LayerShape::reads_beside)) carver.take(space.beside, rows, 2 * std::int64_t{model.embedding});
  if (widths.branch > 0) carver.take(space.branch, rows, widths.branch);
  carver.take(space.query, rows, widths.query);
  carver.take(space.key, rows, widths.key);
  carver.take(space.value, rows, widths.key);
  carver.take(space.attended, rows, widths.attended);
  if (widths.mixed > 0) carver.take(space.mixed, rows, widths.mixed);
  if (widths.convolved > 0) carver.take(space.convolved, rows, widths.convolved);
  if (widths.delta_heads > 0) {
    carver.take(space.state_gate, rows, widths.state_gate);
    carver.take(space.betas, rows, widths.delta_heads);
    carver.take(space.decays, rows, widths.delta_heads);
  }
  if (space.shape.drafts > 0) carve_kept(space, carver, model);
  if (widths.attention_gate > 0) carver.take(space.attention_gate, rows, widths.attention_gate);
  if (model.layer_inputs) carver.take(space.layer_inputs, rows, model.layer_inputs->projection.outputs);
  if (model.streams) carver.take(space.streams, rows, std::int64_t{model.streams->count} * model.embedding);
  if (widths.learned_residual > 0) carver.take(space.learned_residual, rows, widths.learned_residual);
  if (widths.narrow > 0) carver.take(space.narrow, rows, widths.narrow);
  carver.take(space.gate, rows, widths.feed_forward);
  carver.take(space.up, rows, widths.feed_forward);
  if (widths.experts > 0) carve_experts(space, carver, widths);
  if (widths.latent_heads > 0) {
    carver.take(space.narrow_query, rows, widths.narrow_query);
    carver.take(space.head_queries, rows, widths.head_queries);
    carver.take(space.latent_values, rows, widths.latent_values);
    carver.take(space.head_products, widths.latent_heads, 1);
  }
  space.angles.resize(model.rotary.size());
  for (std::size_t i = 0; i < model.rotary.size(); ++i) {
    Angles& angles = space.angles[i];
    angles.pairs = model.rotary[i].rotated / 2;
    carver.take(angles.cos, rows, angles.pairs);
    carver.take(angles.sin, rows, angles.pairs);
  }
  carver.take(space.logits, space.shape.logit_rows, model.vocab);
  const std::int64_t most_rows = std::max<std::int64_t>(rows, space.shape.logit_rows);
  carver.take(space.prepared, 1, static_cast<std::int64_t>(most_prepared(model, weights, table, most_rows)));
  carver.take(space.attention_rows, rows, 1);
  carver.take(space.attention_ahead, rows, 1);
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
