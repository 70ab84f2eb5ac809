// Matrix products of the rows of a pass, shared among the team. What is hung on a product, or shares it with others, hooks in here.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/low_rank.h"
#include "model/product.h"
#include "model/rank_gather.h"
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
  // All outlive the runner. `ranks` compute the products together; null: there is one.
  ProductRunner(const kernels::KernelTable& table, kernels::ThreadTeam& team, RankGather* ranks = nullptr)
      : table_(table), team_(team), ranks_(ranks), low_rank_(table, team) {}

  static constexpr std::size_t kMostProducts = 4;

  // Runs at most kMostProducts products that read the same rows, and adds what the rows' adapters do. input(row, scratch) gives a row's values;
  // it may compute them in `scratch`. The rows are those of the pass from first_row on.
  template <class Input>
  void run(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input, std::int64_t first_row = 0) const {
    // Neighbours of one weight type share the prepared rows; another type (as in mixed quantisations) prepares them again.
    assert(products.size() <= kMostProducts);
    std::array<PreparedProduct, kMostProducts> prepared;
    while (!products.empty()) {
      const kernels::PackedMatrix& first = *products.front().weights;
      const auto same = std::ranges::find_if(products, [&](const Product& product) { return product.weights->type != first.type; });
      const auto count = static_cast<std::size_t>(same - products.begin());
      const std::span<const Product> group = products.first(count);
      const bool adapted = space.adapted.any();
      if (adapted) {
        low_rank_.begin(group, rows, first_row, space.adapted);
        prepare_adapted(group, rows, space, input, first_row);
      } else {
        team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
          auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
          for (std::int64_t row = begin; row < end; ++row)
            table_.prepare_rows(first.type, input(row, scratch), first.inputs, {row, row + 1, rows}, first.inputs, space.prepared);
        });
      }
      std::ranges::transform(group, prepared.begin(), [&](const Product& product) {
        return PreparedProduct{product, space.prepared, rows};
      });
      run_prepared(std::span(prepared).first(count));
      if (adapted) {
        replace(group, rows, space, input, first_row);
        low_rank_.up(group, rows, first_row, space.adapted);
      }
      products = products.subspan(count);
    }
  }

  const LowRank& low_rank() const { return low_rank_; }
  RankGather* ranks() const { return ranks_; }

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

  // Prepares rows of which some have adapters, and computes what comes down of these: of some rows of one adapter together, which read its
  // matrices once.
  template <class Input>
  void prepare_adapted(std::span<const Product> group, std::int64_t rows, Workspace& space, Input&& input, std::int64_t first_row) const {
    const kernels::PackedMatrix& first = *group.front().weights;
    AdaptedRows& adapted = space.adapted;
    const auto runs = static_cast<std::int64_t>(adapted.runs().size());
    const auto plain = static_cast<std::int64_t>(adapted.plain().size());
    const auto is_ours = [&](std::int32_t of_pass) { return of_pass >= first_row && of_pass < first_row + rows; };
    const auto prepare = [&](std::int64_t row, const float* x) {
      table_.prepare_rows(first.type, x, first.inputs, {row, row + 1, rows}, first.inputs, space.prepared);
    };
    adapted.make_input_room(team_.size(), static_cast<std::int64_t>(LowRank::kMostRows) * first.inputs);
    team_.for_chunks(runs + plain, 1, [&](std::int64_t from, std::int64_t to, int member) {
      auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
      for (std::int64_t item = from; item < to; ++item) {
        if (item >= runs) {
          const std::int32_t of_pass = adapted.plain()[static_cast<std::size_t>(item - runs)];
          if (is_ours(of_pass)) prepare(of_pass - first_row, input(of_pass - first_row, scratch));
          continue;
        }
        std::array<std::int32_t, LowRank::kMostRows> own;
        std::array<const float*, LowRank::kMostRows> x;
        std::size_t used = 0;
        for (const std::int32_t of_pass : adapted.runs()[static_cast<std::size_t>(item)]) {
          if (!is_ours(of_pass)) continue;
          float* copy = adapted.inputs(member) + static_cast<std::int64_t>(used) * first.inputs;  // the next row may use the scratch
          std::copy_n(input(of_pass - first_row, scratch), first.inputs, copy);
          prepare(of_pass - first_row, copy);
          own[used] = of_pass;
          x[used++] = copy;
        }
        if (used > 0) low_rank_.down(group, std::span(own).first(used), first_row, x.data(), adapted);
      }
    });
  }

  // Products with matrices of the rows' adapters in the place of the model's: as many neighbours together as have the same one.
  template <class Input>
  void replace(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input, std::int64_t first_row) const {
    for (const Product& product : products) {
      const auto own = [&](std::int64_t row) { return LowRank::replacement(space.adapted.of_row(first_row + row), *product.weights); };
      for (std::int64_t begin = 0, end = 0; begin < rows; begin = end) {
        const kernels::PackedMatrix* weights = own(begin);
        for (end = begin + 1; end < rows && own(end) == weights;) ++end;
        if (weights == nullptr) continue;
        std::byte* prepared = space.adapted.prepared(table_.prepared_bytes(weights->type, weights->inputs, end - begin));
        team_.for_chunks(end - begin, kRowChunk, [&](std::int64_t from, std::int64_t to, int member) {
          auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
          for (std::int64_t row = from; row < to; ++row)
            table_.prepare_rows(weights->type, input(begin + row, scratch), weights->inputs, {row, row + 1, end - begin}, weights->inputs,
                                prepared);
        });
        const PreparedProduct one{{weights, Rows{product.out[begin], product.out.stride}}, prepared, end - begin};
        run_prepared({&one, 1});
      }
    }
  }

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  RankGather* const ranks_;
  const LowRank low_rank_;
};

}  // namespace braid::model
