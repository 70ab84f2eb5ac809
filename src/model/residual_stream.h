// The residual stream: how a branch reads it, and how what a branch gives is added to it.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/norm.h"
#include "model/product_runner.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace braid::model {

// No allocation. Strand only.
class ResidualStream {
 public:
  // All arguments outlive the stream.
  ResidualStream(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products)
      : table_(table), team_(team), products_(products) {}

  // Row `row` after a norm, in `out`, which is returned; or as it is, where the norm is of kNone.
  const float* read(std::int64_t row, const NormShape& shape, const NormWeights& norm, const Workspace& space, float* out) const {
    if (shape.kind == NormShape::Kind::kNone) return space.residual[row];
    normalise(table_, shape, space.adapted.norm(row, norm), space.residual.fetch(row, shape.width), out);
    return out;
  }

  // Adds a branch's last product after `post_norm`, which may be of kNone, times `scale`. input: as in ProductRunner::run.
  template <class Input>
  void add(const LinearWeights& last, const NormShape& post_norm, const NormWeights& norm, float scale, std::int64_t rows, Workspace& space,
           Input&& input) const {
    const bool direct = post_norm.kind == NormShape::Kind::kNone && scale == 1.0F;
    const Rows& out = direct ? space.residual : space.branch;
    const Product product{&last.matrix, out, direct};
    products_.run({&product, 1}, rows, space, input);
    products_.add_bias(last, out, rows);
    if (!direct) add_branch(post_norm, norm, scale, rows, space);
  }

  // Adds space.branch likewise.
  void add_branch(const NormShape& post_norm, const NormWeights& norm, float scale, std::int64_t rows, const Workspace& space) const {
    const std::int64_t width = space.embedding;
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        float* branch = space.branch[row];
        const bool sound = in_range(branch, width);
        if (post_norm.kind != NormShape::Kind::kNone) normalise(table_, post_norm, space.adapted.norm(row, norm), branch, branch);
        if (scale != 1.0F) std::transform(branch, branch + width, branch, [scale](float x) { return x * scale; });
        if (!sound) std::fill_n(branch, width, std::numeric_limits<float>::quiet_NaN());
        table_.add(space.residual[row], branch, width);
      }
    });
  }

 private:
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
};

}  // namespace braid::model
