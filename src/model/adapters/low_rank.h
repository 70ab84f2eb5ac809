// What adapters add to the products of the rows that have one.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/adapted_rows.h"
#include "model/adapters/adapter.h"
#include "model/product.h"

#include <cstdint>
#include <span>

namespace braid::model {

// Strand only. A row's sums have an order of their own, so its bits do not depend on which others have an adapter.
class LowRank {
 public:
  // Both outlive it.
  LowRank(const kernels::KernelTable& table, kernels::ThreadTeam& team) : table_(table), team_(team) {}

  // Before products of `rows` rows, which are those of the pass from first_row on: rows of the residual stream that a sum with magnitudes is
  // to be added to are put aside.
  void begin(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const;
  // What comes down of one row, which reads `x`. Any member of the team.
  void down(std::span<const Product> products, std::int64_t row, std::int64_t first_row, const float* x, AdaptedRows& adapted) const;
  // Afterwards: what goes up to their results.
  void up(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const;

  // The parts of the above. down: [set.width].
  void down(const AdapterSet& set, std::uint32_t number, const float* x, float* down) const;
  // To outputs [begin, end) of one row, at most kBlock of them, `begin` the first one of a group of columns.
  static constexpr std::int64_t kBlock = 512;
  void up(const AdapterSet& set, std::uint32_t number, const float* down, std::int64_t begin, std::int64_t end, float* out) const;

  // A token's embedding, which `out` has as the model's own says it.
  void embed(const AdapterSet& set, const kernels::PackedMatrix& embedding, std::int32_t token, float* out) const;

  // A matrix that takes a product's place for a row; null: none does.
  static const kernels::PackedMatrix* replacement(const AdapterSet* set, const kernels::PackedMatrix& weights);

 private:
  static bool puts_aside(const AdapterSet* set, const Product& product);

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
