#include "model/experts.h"

#include "model/activations.h"
#include "model/fused_swiglu.h"

#include <algorithm>
#include <span>
#include <vector>

namespace braid::model {
namespace {

constexpr std::size_t kPartAlignment = 64;  // of an expert's prepared rows

Rows from(const Rows& rows, std::int64_t first) { return {rows[first], rows.stride}; }

}  // namespace

void Experts::route(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  choose(rows, shape.router, weights, space);
  sort(rows, shape.router, space.routes);
}

void Experts::add(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  if (shape.latent() > 0) narrow(rows, shape, weights, space);
  project(shape, weights, space);
  prepare(weights, {&FeedForwardWeights::down, space.expert_out}, {}, space,
          [&](std::int64_t place, float* scratch) { return activated(place, shape, weights, space, scratch); });
  std::size_t count = 0;
  for (std::size_t expert = 0; expert < weights.each.size(); ++expert)
    if (space.routes.rows_of(expert) > 0)
      space.routes.products[count++] = product(weights, &FeedForwardWeights::down, expert, space.expert_out, space);
  products_.run_prepared({space.routes.products, count});
  products_.run_replaced(space);
  adapt(weights, &FeedForwardWeights::down, false, space.expert_out, space);
  combine(rows, shape, weights, space);
  if (shape.latent() > 0) widen(rows, weights, space);
}

void Experts::narrow(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  const Product down{&weights.latent_down.matrix, space.latent_rows};
  products_.run({&down, 1}, rows, space, [&](std::int64_t row, float*) { return space.normed[row]; });
  for (std::int64_t row = 0; row < rows; ++row) std::fill_n(space.latent_sums[row], shape.latent(), 0.0F);
}

void Experts::widen(std::int64_t rows, const ExpertsWeights& weights, Workspace& space) const {
  const Product up{&weights.latent_up.matrix, space.branch, true};
  products_.run({&up, 1}, rows, space, [&](std::int64_t row, float*) { return space.latent_sums[row]; });
}

void Experts::choose(std::int64_t rows, const RouterShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  const Product scores{&weights.router.matrix, space.scores};
  products_.run({&scores, 1}, rows, space, [&](std::int64_t row, float*) { return space.normed[row]; });
  products_.add_bias(weights.router, space.scores, rows);
  const auto experts = static_cast<std::size_t>(shape.experts());
  const auto chosen = static_cast<std::size_t>(shape.chosen);
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    const std::span scratch(reinterpret_cast<float*>(space.scratch_of(member)), 2 * experts);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::span scores_of_row(space.scores[row], experts);
      if (shape.score_scale != 1.0F)
        std::ranges::transform(scores_of_row, scores_of_row.begin(), [&](float x) { return x * shape.score_scale; });
      const std::span choices(space.routes.choices + static_cast<std::size_t>(row) * chosen, chosen);
      choose_experts(table_, shape, scores_of_row, weights.correction, scratch, choices);
      if (weights.weights.empty()) continue;
      for (ExpertChoice& choice : choices) choice.weight *= weights.weights[static_cast<std::size_t>(choice.expert)];
    }
  });
}

void Experts::sort(std::int64_t rows, const RouterShape& shape, const Routes& routes) {
  const std::int64_t places = rows * shape.chosen;
  std::fill_n(routes.begin, shape.experts() + 1, 0);
  for (std::int64_t i = 0; i < places; ++i) ++routes.begin[routes.choices[i].expert + 1];
  for (std::int32_t expert = 0; expert < shape.experts(); ++expert) routes.begin[expert + 1] += routes.begin[expert];
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int32_t expert = routes.choices[i].expert;
    const std::int32_t place = routes.begin[expert]++;
    routes.place_of[i] = place;
    routes.row_of[place] = static_cast<std::int32_t>(i / shape.chosen);
    routes.expert_of[place] = expert;
  }
  std::copy_backward(routes.begin, routes.begin + shape.experts(), routes.begin + shape.experts() + 1);  // each has come to the next one's
  routes.begin[0] = 0;
}

void Experts::project(const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  const FeedForwardWeights& first = weights.each.front();
  const bool gated = shape.each.gated;
  if (space.adapted.any()) space.adapted.make_room(2 * std::int64_t{space.routes.begin[weights.each.size()]});
  const bool together = gated && first.gate.matrix.type == first.up.matrix.type;  // on the same prepared rows
  const Rows& read = shape.latent() > 0 ? space.latent_rows : space.normed;
  const auto normed = [&](std::int64_t place, float*) { return read[space.routes.row_of[place]]; };
  std::size_t count = 0;
  const auto run = [&] {
    products_.run_prepared({space.routes.products, count});
    products_.run_replaced(space);
    count = 0;
  };
  const auto up = [&](std::size_t expert) {
    space.routes.products[count++] = product(weights, &FeedForwardWeights::up, expert, space.expert_up, space);
  };
  const Projection gates{&FeedForwardWeights::gate, space.expert_gate};
  const Projection ups{&FeedForwardWeights::up, space.expert_up};
  if (gated) prepare(weights, gates, together ? ups : Projection(), space, normed);
  for (std::size_t expert = 0; gated && expert < weights.each.size(); ++expert) {
    const std::int64_t rows = space.routes.rows_of(expert);
    if (rows == 0) continue;
    PreparedProduct& gate = space.routes.products[count++];
    gate = product(weights, &FeedForwardWeights::gate, expert, space.expert_gate, space);
    const bool fused = fuses_swiglu(table_, rows, shape.each, weights.each[expert], space);
    if (fused) gate.product.up = &weights.each[expert].up.matrix;
    if (together && !fused) up(expert);
  }
  run();
  if (gated) adapt(weights, &FeedForwardWeights::gate, false, space.expert_gate, space);
  if (together) return adapt(weights, &FeedForwardWeights::up, true, space.expert_up, space);
  prepare(weights, ups, {}, space, normed);
  for (std::size_t expert = 0; expert < weights.each.size(); ++expert)
    if (space.routes.rows_of(expert) > 0) up(expert);
  run();
  adapt(weights, &FeedForwardWeights::up, false, space.expert_up, space);
}

template <class Input>
void Experts::prepare(const ExpertsWeights& weights, const Projection& one, const Projection& other, Workspace& space,
                      Input&& input) const {
  const Routes& routes = space.routes;
  const kernels::PackedMatrix& matrix = (weights.each.front().*one.part).matrix;
  std::size_t used = 0;
  for (std::size_t expert = 0; expert < weights.each.size(); ++expert) {
    routes.prepared_at[expert] = used;
    const std::int64_t rows = routes.rows_of(expert);
    if (rows > 0) used += (table_.prepared_bytes(matrix.type, matrix.inputs, rows) + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  }
  find_replaced(weights, one, other, space);
  team_.for_chunks(routes.begin[weights.each.size()], kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    for (std::int64_t place = begin; place < end; ++place) {
      const auto expert = static_cast<std::size_t>(routes.expert_of[place]);
      const std::int64_t index = place - routes.begin[expert];
      const float* x = input(place, scratch);
      table_.prepare_rows(matrix.type, x, matrix.inputs, {index, index + 1, routes.rows_of(expert)}, matrix.inputs,
                          space.prepared + routes.prepared_at[expert]);
      const AdapterSet* set = space.adapted.of_row(routes.row_of[place]);
      if (set == nullptr) continue;
      for (const Projection* each : {&one, &other}) {
        if (each->part == nullptr) continue;
        const std::int64_t slot = 2 * place + (each == &other ? 1 : 0);
        space.adapted.replaced.prepare(table_, slot, x);
        const LowRank::Row row{x, space.adapted.down(slot)};
        products_.low_rank().down(*set, (weights.each[expert].*each->part).matrix.number, {&row, 1});
      }
    }
  });
}

void Experts::find_replaced(const ExpertsWeights& weights, const Projection& one, const Projection& other, Workspace& space) const {
  AdaptedRows& adapted = space.adapted;
  if (!adapted.any()) return;
  const Routes& routes = space.routes;
  const std::int64_t places = routes.begin[weights.each.size()];
  adapted.replaced.begin(2 * places);
  for (std::int64_t place = 0; place < places; ++place) {
    const FeedForwardWeights& expert = weights.each[static_cast<std::size_t>(routes.expert_of[place])];
    for (const Projection* each : {&one, &other}) {
      if (each->part == nullptr) continue;
      if (const auto* own = LowRank::replacement(adapted.of_row(routes.row_of[place]), (expert.*each->part).matrix))
        adapted.replaced.add(2 * place + (each == &other ? 1 : 0), *own, each->out[place]);
    }
  }
  adapted.replaced.lay_out(table_);
}

void Experts::adapt(const ExpertsWeights& weights, Part part, bool is_other, const Rows& out, Workspace& space) const {
  if (!space.adapted.any()) return;
  const Routes& routes = space.routes;
  team_.for_chunks(routes.begin[weights.each.size()], kRowChunk, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t place = from; place < to; ++place) {
      const AdapterSet* set = space.adapted.of_row(routes.row_of[place]);
      if (set == nullptr) continue;
      const kernels::PackedMatrix& matrix = (weights.each[static_cast<std::size_t>(routes.expert_of[place])].*part).matrix;
      const LowRank::Row row{space.adapted.down(2 * place + (is_other ? 1 : 0)), out[place]};
      for (std::int64_t begin = 0; begin < matrix.outputs; begin += LowRank::kBlock)
        products_.low_rank().up(*set, matrix.number, {&row, 1}, begin, std::min(matrix.outputs, begin + LowRank::kBlock));
    }
  });
}

PreparedProduct Experts::product(const ExpertsWeights& weights, Part part, std::size_t expert, const Rows& out,
                                 const Workspace& space) const {
  const Routes& routes = space.routes;
  return {.product = {&(weights.each[expert].*part).matrix, from(out, routes.begin[expert])},
          .prepared = space.prepared + routes.prepared_at[expert],
          .rows = routes.rows_of(expert)};
}

const float* Experts::activated(std::int64_t place, const ExpertsShape& shape, const ExpertsWeights& weights, const Workspace& space,
                                float* scratch) const {
  const auto expert = static_cast<std::size_t>(space.routes.expert_of[place]);
  const FeedForwardWeights& own = weights.each[expert];
  float* gate = space.expert_gate[place];
  if (fuses_swiglu(table_, space.routes.rows_of(expert), shape.each, own, space)) return gate;
  float* up = space.expert_up[place];
  if (!own.gate.bias.empty()) table_.add(gate, own.gate.bias.data(), shape.each.width);
  if (!own.up.bias.empty()) table_.add(up, own.up.bias.data(), shape.each.width);
  activate(table_, shape.each, gate, up, scratch);
  return scratch;
}

void Experts::combine(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const {
  const std::int64_t width = shape.latent() > 0 ? shape.latent() : space.embedding;
  const Rows& sums = shape.latent() > 0 ? space.latent_sums : space.branch;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin * shape.router.chosen; i < end * shape.router.chosen; ++i) {
      const ExpertChoice& choice = space.routes.choices[i];
      float* given = space.expert_out[space.routes.place_of[i]];
      const std::vector<float>& bias = weights.each[static_cast<std::size_t>(choice.expert)].down.bias;
      if (!bias.empty()) table_.add(given, bias.data(), width);
      float* out = sums[i / shape.router.chosen];
      for (std::int64_t k = 0; k < width; ++k) out[k] += choice.weight * given[k];
    }
  });
}

}  // namespace braid::model
