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
        find_replaced(group, rows, first_row, space.adapted);
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
        run_replaced(space);
        low_rank_.up(group, rows, first_row, space.adapted);
      }
      products = products.subspan(count);
    }
  }

  const LowRank& low_rank() const { return low_rank_; }
  RankGather* ranks() const { return ranks_; }

  // Runs products whose rows are prepared.
  void run_prepared(std::span<const PreparedProduct> products) const;
  // The same of those of space.adapted.replaced: their results take the place of what the model's own matrices gave.
  void run_replaced(Workspace& space) const;

  // Adds a product's bias to its results, where it has one.
  void add_bias(const LinearWeights& linear, const Rows& out, std::int64_t rows) const {
    if (linear.bias.empty()) return;
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) table_.add(out[row], linear.bias.data(), linear.matrix.outputs);
    });
  }

 private:
  class ClaimedPanels;

  // Of a row and a product, among those that read the same rows.
  static std::int64_t slot_of(std::int64_t row, std::size_t product, std::size_t products) {
    return row * static_cast<std::int64_t>(products) + static_cast<std::int64_t>(product);
  }
  // Which rows have a matrix of their own in the place of the model's.
  void find_replaced(std::span<const Product> group, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const;

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
    team_.for_claims(runs + plain, 1, [&](kernels::ThreadTeam::Claims& claims, int member) {
      auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
      LowRank::Reading reading;
      for (std::int64_t from = 0, to = 0; claims.next(from, to);)
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
            for (std::size_t i = 0; i < group.size(); ++i)
              adapted.replaced.prepare(table_, slot_of(of_pass - first_row, i, group.size()), copy);
            x[used++] = copy;
          }
          if (used == 0) continue;
          const AdapterSet* next = item + 1 < runs ? adapted.of_row(adapted.runs()[static_cast<std::size_t>(item + 1)].front()) : nullptr;
          low_rank_.down(group, std::span(own).first(used), first_row, x.data(), adapted, next, reading);
        }
    });
  }

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  RankGather* const ranks_;
  const LowRank low_rank_;
};

}  // namespace braid::model
