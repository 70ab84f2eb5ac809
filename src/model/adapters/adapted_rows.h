// Which rows of a pass have an adapter, and what its products need beside the workspace.
#pragma once

#include "model/adapters/adapter.h"
#include "model/adapters/adapter_table.h"
#include "step/pass.h"

#include <cstddef>
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
  // The rows that have one, those of one adapter side by side.
  std::span<const std::int32_t> order() const { return order_; }

  // What comes down for one of `items` products of rows, [items, widest adapter].
  void make_room(std::int64_t items);
  float* down(std::int64_t item) { return down_.data() + item * width_; }

  // Whole lines of floats or bytes that last until the next call.
  float* saved(std::int64_t floats);
  std::byte* prepared(std::size_t bytes);

 private:
  void sort();

  std::vector<const AdapterSet*> of_row_;
  std::vector<std::int32_t> order_;
  std::int64_t width_ = 0;
  std::vector<float> down_;
  std::vector<float> saved_;
  std::vector<std::byte> prepared_;
};

}  // namespace braid::model
