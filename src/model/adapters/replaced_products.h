// Products with matrices that adapters bring whole: the rows that use the same one side by side, so that it is read once for all of them.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/product.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Strand only. It grows with the largest of them that it has seen, and allocates nothing for others.
class ReplacedProducts {
 public:
  // Forgets what was added. The caller numbers what follows: slots [0, slots).
  void begin(std::int64_t slots);
  // What `own` makes of the row that prepare() is given for the slot is to be in `out`; at most once for each.
  void add(std::int64_t slot, const kernels::PackedMatrix& own, float* out, bool stays_apart = false);
  bool any() const { return !rows_.empty(); }
  // When all are added.
  void lay_out(const kernels::KernelTable& table);
  // Any member of the team; nothing is done for a slot that none was added for.
  void prepare(const kernels::KernelTable& table, std::int64_t slot, const float* x);
  // To be run when all are prepared, in the order in which their first rows were added.
  std::span<const PreparedProduct> products() const { return products_; }
  // What they have given, to where it is wanted.
  void deliver(kernels::ThreadTeam& team) const;

 private:
  struct Group {
    const kernels::PackedMatrix* matrix = nullptr;
    std::int64_t rows = 0;
    std::size_t prepared = 0;  // place of its rows
    bool stays_apart = false;
  };
  struct Row {
    std::int32_t group = 0;
    std::int32_t index = 0;  // in it
    float* out = nullptr;
  };

  std::vector<std::int32_t> row_of_;  // by slot; -1: none
  std::vector<Group> groups_;
  std::vector<Row> rows_;
  std::vector<PreparedProduct> products_;  // by group
  std::vector<std::byte> prepared_;
  std::byte* first_prepared_ = nullptr;
  std::vector<float> results_;
};

}  // namespace braid::model
