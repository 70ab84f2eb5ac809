// Matrix products of the rows of a pass, shared among the team. What is hung on a product, or shares it with others, hooks in here.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/product.h"
#include "model/rows.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// No allocation. Strand only.
class ProductRunner {
 public:
  // Both outlive the runner.
  ProductRunner(const kernels::KernelTable& table, kernels::ThreadTeam& team) : table_(table), team_(team) {}

  static constexpr std::size_t kMostProducts = 4;

  // Runs at most kMostProducts products that read the same rows. input(row, scratch) gives a row's values; it may compute them in `scratch`.
  template <class Input>
  void run(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input) const {
    // Neighbours of one weight type share the prepared rows; another type (as in mixed quantisations) prepares them again.
    assert(products.size() <= kMostProducts);
    std::array<PreparedProduct, kMostProducts> prepared;
    while (!products.empty()) {
      const kernels::PackedMatrix& first = *products.front().weights;
      const auto same = std::ranges::find_if(products, [&](const Product& product) { return product.weights->type != first.type; });
      const auto count = static_cast<std::size_t>(same - products.begin());
      team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
        auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
        for (std::int64_t row = begin; row < end; ++row)
          table_.prepare_rows(first.type, input(row, scratch), first.inputs, {row, row + 1, rows}, first.inputs, space.prepared);
      });
      std::ranges::transform(products.first(count), prepared.begin(), [&](const Product& product) {
        return PreparedProduct{product, space.prepared, rows};
      });
      run_prepared(std::span(prepared).first(count));
      products = products.subspan(count);
    }
  }

  // Runs products whose rows are prepared.
  void run_prepared(std::span<const PreparedProduct> products) const;

  // Adds a product's bias to its results, where it has one.
  void add_bias(const LinearWeights& linear, const Rows& out, std::int64_t rows) const {
    if (linear.bias.empty()) return;
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) table_.add(out[row], linear.bias.data(), linear.matrix.outputs);
    });
  }

 private:
  class ClaimedPanels;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
