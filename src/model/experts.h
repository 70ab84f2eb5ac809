// Networks of which each row goes through a few. Rows are put in the order of their experts, so that an expert's weights are read once for
// all rows that chose it; what a row gets does not depend on who else did.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only.
class Experts {
 public:
  // All arguments outlive it.
  Experts(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products)
      : table_(table), team_(team), products_(products) {}

  // Chooses the experts of the first `rows` rows by those of space.normed: fills space.routes.
  void route(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;

  // Adds to the first `rows` rows of space.branch what the experts chosen make of those of space.normed, in the order of each row's choices.
  void add(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;

 private:
  using Part = LinearWeights FeedForwardWeights::*;
  // Of all experts, and where its results are wanted by place.
  struct Projection {
    Part part = nullptr;
    Rows out = {};
  };

  // Fills space.routes.choices.
  void choose(std::int64_t rows, const RouterShape& shape, const ExpertsWeights& weights, Workspace& space) const;
  // Fills the places of space.routes.
  static void sort(std::int64_t rows, const RouterShape& shape, const Routes& routes);
  // Fills space.latent_rows of space.normed; empties space.latent_sums.
  void narrow(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;
  // Adds what space.latent_sums make to space.branch.
  void widen(std::int64_t rows, const ExpertsWeights& weights, Workspace& space) const;
  // Fills space.expert_gate, and space.expert_up where that is not fused.
  void project(const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;
  // Prepares the rows of all places for products of a part, and of another one that reads the same rows, if any. input(place, scratch) gives
  // their values; it may compute them in `scratch`.
  template <class Input>
  void prepare(const ExpertsWeights& weights, const Projection& one, const Projection& other, Workspace& space, Input&& input) const;
  // Which places have a matrix of an adapter's in the place of an expert's.
  void find_replaced(const ExpertsWeights& weights, const Projection& one, const Projection& other, Workspace& space) const;
  // Adds to the results of a part what the rows' adapters do; is_other: it was the other one.
  void adapt(const ExpertsWeights& weights, Part part, bool is_other, const Rows& out, Workspace& space) const;
  PreparedProduct product(const ExpertsWeights& weights, Part part, std::size_t expert, const Rows& out, const Workspace& space) const;
  // One place between the products, in `scratch` or where it lies.
  const float* activated(std::int64_t place, const ExpertsShape& shape, const ExpertsWeights& weights, const Workspace& space,
                         float* scratch) const;
  void combine(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
};

}  // namespace braid::model
