// Which rows of a pass have an adapter, and what its products need beside the workspace.
#pragma once

#include "kernels/low_rank.h"
#include "model/adapters/adapter.h"
#include "model/adapters/adapter_table.h"
#include "model/adapters/replaced_products.h"
#include "step/pass.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Strand only. It grows with the widest adapter and the largest pass that it has seen, and allocates nothing for others.
class AdaptedRows {
 public:
  // The rows of a pass, whose tokens name adapters of the table; null: there are none.
  void begin(const step::Pass& pass, const AdapterTable* table);
  // Of them these, in ascending order, which move to the front.
  void keep(std::span<const std::int32_t> picked);

  bool any() const { return !order_.empty(); }
  const AdapterSet* of_row(std::int64_t row) const { return any() ? of_row_[static_cast<std::size_t>(row)] : nullptr; }
  // The row's, in the place of one of the model's, or that.
  const NormWeights& norm(std::int64_t row, const NormWeights& own) const {
    const AdapterSet* set = of_row(row);
    return set != nullptr ? set->norm(own) : own;
  }
  // The rows that have one, those of one adapter side by side: some of them at a time.
  static constexpr std::size_t kMostTogether = kernels::kMostSums;
  std::span<const std::span<const std::int32_t>> runs() const { return runs_; }
  // Those that have none.
  std::span<const std::int32_t> plain() const { return plain_; }

  // What comes down for one of `items` products of rows, [items, widest adapter].
  void make_room(std::int64_t items);
  float* down(std::int64_t item) { return down_.data() + item * width_; }

  // What a member of the team reads, of so many floats.
  void make_input_room(std::int64_t members, std::int64_t floats);
  float* inputs(std::int64_t member) { return inputs_.data() + member * inputs_each_; }

  // Floats that last until the next call.
  float* saved(std::int64_t floats);

  // Of the products at hand.
  ReplacedProducts replaced;

 private:
  void sort();

  std::vector<const AdapterSet*> of_row_;
  std::vector<std::int32_t> order_;
  std::vector<std::span<const std::int32_t>> runs_;  // of order_
  std::vector<std::int32_t> plain_;
  std::int64_t width_ = 0;
  std::vector<float> down_;
  std::vector<float> inputs_;
  std::int64_t inputs_each_ = 0;
  std::vector<float> saved_;
};

}  // namespace braid::model
