// Matrix products of the rows of a pass, shared among the team. What is hung on a product, or shares it with others, hooks in here.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/rows.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// One matrix product of the rows at hand.
struct Product {
  const kernels::PackedMatrix* weights = nullptr;
  Rows out;  // [rows, weights->outputs]
  bool accumulate = false;
  const kernels::PackedMatrix* up = nullptr;  // MatmulArgs
};

// No allocation. Strand only.
class ProductRunner {
 public:
  // Both outlive the runner.
  ProductRunner(const kernels::KernelTable& table, kernels::ThreadTeam& team) : table_(table), team_(team) {}

  // Runs products that read the same rows. input(row, scratch) gives a row's values; it may compute them in `scratch`.
  template <class Input>
  void run(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input) const {
    // Neighbours of one weight type share the prepared rows; another type (as in mixed quantisations) prepares them again.
    while (!products.empty()) {
      const kernels::PackedMatrix& first = *products.front().weights;
      const auto same = std::ranges::find_if(products, [&](const Product& product) { return product.weights->type != first.type; });
      const auto count = static_cast<std::size_t>(same - products.begin());
      team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
        auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
        for (std::int64_t row = begin; row < end; ++row)
          table_.prepare_rows(first.type, input(row, scratch), first.inputs, {row, row + 1, rows}, first.inputs, space.prepared);
      });
      run_prepared(products.first(count), rows, space);
      products = products.subspan(count);
    }
  }

  // Adds a product's bias to its results, where it has one.
  void add_bias(const LinearWeights& linear, const Rows& out, std::int64_t rows) const {
    if (linear.bias.empty()) return;
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) table_.add(out[row], linear.bias.data(), linear.matrix.outputs);
    });
  }

 private:
  class ClaimedPanels;

  void run_prepared(std::span<const Product> products, std::int64_t rows, Workspace& space) const;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
