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

  // Before products of `rows` rows, which are those of the pass from first_row on: rows of the residual stream that something else than the
  // base's product and what goes up is to be added to are put aside.
  void begin(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const;
  // What a member of the team reads after the matrix at hand, and how far that has been fetched by then.
  struct Reading {
    const AdapterSet* next = nullptr;  // null: nobody knows
    std::uint32_t number = 0;
    std::int64_t begin = 0;              // of its outputs
    const std::byte* fetched = nullptr;  // where that begins which is in a cache already
  };
  // What comes down of some rows of one adapter, of which row i reads x[i]; at most kMostRows. Any member of the team. `next`: whose turn is next.
  static constexpr std::size_t kMostRows = kernels::kMostSums;
  void down(std::span<const Product> products, std::span<const std::int32_t> rows, std::int64_t first_row, const float* const* x,
            AdaptedRows& adapted, const AdapterSet* next, Reading& reading) const;
  // Afterwards: what goes up to their results.
  void up(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const;

  // A row of a product with one of the matrices, at one end of it: what it reads, and what becomes of it.
  struct Row {
    const float* from = nullptr;
    float* to = nullptr;
  };
  // The parts of the above, of at most kMostRows rows of one adapter. from: [inputs], to: [set.width].
  void down(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, Reading& reading) const;
  void down(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows) const {
    Reading reading;
    down(set, number, rows, reading);
  }
  // from: [set.width], to: [outputs], of which [begin, end) are added to, at most kBlock of them, `begin` the first one of a group of columns.
  static constexpr std::int64_t kBlock = 512;
  void up(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, std::int64_t begin, std::int64_t end,
          Reading& reading) const;
  void up(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, std::int64_t begin, std::int64_t end) const {
    Reading reading;
    up(set, number, rows, begin, end, reading);
  }

  // A token's embedding, which `out` has as the model's own says it.
  void embed(const AdapterSet& set, const kernels::PackedMatrix& embedding, std::int32_t token, float* out) const;

  // A matrix that takes a product's place for a row; null: none does.
  static const kernels::PackedMatrix* replacement(const AdapterSet* set, const kernels::PackedMatrix& weights);

 private:
  void own_tokens(const AdaptedMatrix& head, std::span<const Row> rows) const;
  static bool puts_aside(const AdapterSet* set, const Product& product);

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
