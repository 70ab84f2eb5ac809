#include "model/adapters/replaced_products.h"

#include "model/rows.h"

#include <algorithm>
#include <memory>

namespace braid::model {
namespace {

constexpr std::size_t kLine = 64;  // bytes, of a cache

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Room for so many bytes, which begins with a line.
template <class T>
T* with_room(std::vector<T>& values, std::size_t bytes) {
  if (const std::size_t count = (bytes + kLine) / sizeof(T); count > values.size()) values.resize(count);
  void* begin = values.data();
  std::size_t size = values.size() * sizeof(T);
  return static_cast<T*>(std::align(kLine, bytes, begin, size));
}

// As rows lie that products are to write to (rows.h).
std::int64_t stride_of(std::int64_t outputs) {
  constexpr auto kLineFloats = static_cast<std::int64_t>(kLine / sizeof(float));
  return ((outputs + kLineFloats - 1) / kLineFloats | 1) * kLineFloats;
}

}  // namespace

void ReplacedProducts::begin(std::int64_t slots) {
  row_of_.assign(static_cast<std::size_t>(slots), -1);
  groups_.clear();
  rows_.clear();
  products_.clear();
}

void ReplacedProducts::add(std::int64_t slot, const kernels::PackedMatrix& own, float* out, bool stays_apart) {
  auto group = std::ranges::find(groups_.rbegin(), groups_.rend(), &own, &Group::matrix);
  if (group == groups_.rend()) {
    groups_.push_back({.matrix = &own, .stays_apart = stays_apart});
    group = groups_.rbegin();
  }
  row_of_[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(rows_.size());
  rows_.push_back(
      {.group = static_cast<std::int32_t>(groups_.rend() - group) - 1, .index = static_cast<std::int32_t>(group->rows++), .out = out});
}

// Whose rows are wanted side by side are computed where they are wanted.
void ReplacedProducts::lay_out(const kernels::KernelTable& table) {
  if (!any()) return;
  std::size_t prepared = 0;
  std::size_t results = 0;
  for (Group& group : groups_) {
    group.prepared = prepared;
    prepared += whole_lines(table.prepared_bytes(group.matrix->type, group.matrix->inputs, group.rows));
    results += static_cast<std::size_t>(group.rows * stride_of(group.matrix->outputs)) * sizeof(float);
    products_.push_back({.product = {.weights = group.matrix, .out = {}, .stays_apart = group.stays_apart}, .rows = group.rows});
  }
  for (const Row& row : rows_) {
    Rows& out = products_[static_cast<std::size_t>(row.group)].product.out;
    const Group& group = groups_[static_cast<std::size_t>(row.group)];
    if (row.index == 0) out = {row.out, stride_of(group.matrix->outputs)};
    if (row.index == 1) out.stride = row.out - out.data;
    if (out.data != nullptr && (out[row.index] != row.out || out.stride < group.matrix->outputs)) out.data = nullptr;
  }
  first_prepared_ = with_room(prepared_, prepared);
  float* own = with_room(results_, results);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    products_[i].prepared = first_prepared_ + groups_[i].prepared;
    Rows& out = products_[i].product.out;
    if (out.data != nullptr) continue;
    out = {own, stride_of(groups_[i].matrix->outputs)};
    own += groups_[i].rows * out.stride;
  }
}

void ReplacedProducts::prepare(const kernels::KernelTable& table, std::int64_t slot, const float* x) {
  const std::int32_t at = row_of_[static_cast<std::size_t>(slot)];
  if (at < 0) return;
  const Row& row = rows_[static_cast<std::size_t>(at)];
  const Group& group = groups_[static_cast<std::size_t>(row.group)];
  table.prepare_rows(group.matrix->type, x, group.matrix->inputs, {row.index, row.index + 1, group.rows}, group.matrix->inputs,
                     first_prepared_ + group.prepared);
}

void ReplacedProducts::deliver(kernels::ThreadTeam& team) const {
  team.for_chunks(static_cast<std::int64_t>(rows_.size()), kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      const Product& product = products_[static_cast<std::size_t>(row.group)].product;
      const float* given = product.out[row.index];
      if (given != row.out) std::copy_n(given, product.weights->outputs, row.out);
    }
  });
}

}  // namespace braid::model
