#include "model/adapters/low_rank.h"

#include "kernels/cache_hints.h"
#include "kernels/half.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace braid::model {
namespace {

constexpr std::int64_t kItemsEach = 2;  // blocks of outputs that are claimed together

// Matrices of adapters are small, and lie in no cache: each is asked for as a whole before it is read, or the part of it that is.
void fetch(const std::byte* from, std::int64_t values, const LowRankFactors& factors) {
  constexpr std::int64_t kMostLines = 1024;
  const auto bytes = values * static_cast<std::int64_t>(factors.value_bytes());
  kernels::prefetch_lines<kernels::kFirstLevel>(from, std::min(kMostLines, bytes / 64));
}

std::int64_t blocks_of(std::int64_t outputs) { return (outputs + LowRank::kBlock - 1) / LowRank::kBlock; }

// Where rows of a product with magnitudes are put aside: of product `place`, row `row` of `rows`.
std::int64_t aside(std::int64_t place, std::int64_t row, std::int64_t rows, std::int64_t widest) { return (place * rows + row) * widest; }

std::int64_t widest_of(std::span<const Product> products) {
  std::int64_t widest = 0;
  for (const Product& product : products) widest = std::max(widest, product.weights->outputs);
  return widest;
}

}  // namespace

bool LowRank::puts_aside(const AdapterSet* set, const Product& product) {
  if (set == nullptr || !product.accumulate) return false;
  const AdaptedMatrix* matrix = set->whole(product.weights->number);
  return matrix != nullptr && (!matrix->magnitude.empty() || matrix->replacement.inputs > 0);
}

const kernels::PackedMatrix* LowRank::replacement(const AdapterSet* set, const kernels::PackedMatrix& weights) {
  const AdaptedMatrix* matrix = set != nullptr ? set->whole(weights.number) : nullptr;
  return matrix != nullptr && matrix->replacement.inputs > 0 ? &matrix->replacement : nullptr;
}

void LowRank::begin(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const {
  adapted.make_room(rows * static_cast<std::int64_t>(products.size()));
  const std::int64_t widest = widest_of(products);
  float* saved = nullptr;
  for (std::size_t i = 0; i < products.size(); ++i) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const Product& product = products[i];
      if (!puts_aside(adapted.of_row(first_row + row), product)) continue;
      if (saved == nullptr) saved = adapted.saved(rows * static_cast<std::int64_t>(products.size()) * widest);
      const std::int64_t outputs = product.weights->outputs;
      std::copy_n(product.out[row], outputs, saved + aside(static_cast<std::int64_t>(i), row, rows, widest));
      std::fill_n(product.out[row], outputs, 0.0F);
    }
  }
}

void LowRank::down(std::span<const Product> products, std::span<const std::int32_t> rows, std::int64_t first_row, const float* const* x,
                   AdaptedRows& adapted) const {
  const AdapterSet& set = *adapted.of_row(rows.front());
  const auto count = static_cast<std::int64_t>(products.size());
  std::array<Row, kMostRows> all;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < rows.size(); ++r) all[r] = {x[r], adapted.down((rows[r] - first_row) * count + i)};
    down(set, products[static_cast<std::size_t>(i)].weights->number, std::span(all).first(rows.size()));
  }
}

void LowRank::up(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const {
  const auto count = static_cast<std::int64_t>(products.size());
  const std::int64_t widest = widest_of(products);
  const std::int64_t blocks = blocks_of(widest);
  const std::span<const std::span<const std::int32_t>> runs = adapted.runs();
  const auto in_order = static_cast<std::int64_t>(runs.size());
  // Those of one adapter one after the other, so that a block of its matrix stays in the nearest cache.
  team_.for_chunks(count * blocks * in_order, kItemsEach, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t item = from; item < to; ++item) {
      const std::span<const std::int32_t> run = runs[static_cast<std::size_t>(item % in_order)];
      const std::int64_t place = item / in_order / blocks;
      const std::int64_t first = item / in_order % blocks * kBlock;
      const Product& product = products[static_cast<std::size_t>(place)];
      const std::int64_t outputs = product.weights->outputs;
      if (first >= outputs) continue;
      const AdapterSet& set = *adapted.of_row(run.front());
      const std::int64_t end = std::min(outputs, first + kBlock);
      std::array<Row, kMostRows> all;
      std::size_t used = 0;
      for (const std::int32_t of_pass : run)
        if (const std::int64_t row = of_pass - first_row; row >= 0 && row < rows)
          all[used++] = {adapted.down(row * count + place), product.out[row]};
      up(set, product.weights->number, std::span(all).first(used), first, end);
      if (!puts_aside(&set, product)) continue;
      for (const std::int32_t of_pass : run) {
        const std::int64_t row = of_pass - first_row;
        if (row < 0 || row >= rows) continue;
        const float* saved = adapted.saved(0) + aside(place, row, rows, widest);
        float* out = product.out[row];
        for (std::int64_t i = first; i < end; ++i) out[i] = saved[i] + out[i];
      }
    }
  });
}

void LowRank::down(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows) const {
  std::int64_t at = 0;
  for (const AdapterSet::Part& part : set.parts) {
    const AdaptedMatrix* matrix = part.adapter->find(number);
    if (matrix == nullptr || matrix->low_rank.rank == 0) continue;
    const LowRankFactors& factors = matrix->low_rank;
    kernels::ColumnSumsArgs args{.weights = factors.down, .half = factors.half, .rows = factors.inputs, .stride = factors.down_stride};
    args.count = static_cast<std::int64_t>(rows.size());
    fetch(factors.down, factors.inputs * factors.down_stride, factors);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      args.x[i] = rows[i].from;
      args.out[i] = rows[i].to + at;
    }
    table_.column_sums(args, 0, factors.down_stride);
    const float scale = factors.scale * part.scale;
    for (const Row& row : rows)
      std::transform(row.to + at, row.to + at + factors.rank, row.to + at, [scale](float t) { return t * scale; });
    at += part.adapter->widest;
  }
}

void LowRank::up(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, std::int64_t begin, std::int64_t end) const {
  alignas(64) std::array<std::array<float, kBlock>, kMostRows> added;
  std::int64_t at = 0;
  for (const AdapterSet::Part& part : set.parts) {
    const AdaptedMatrix* matrix = part.adapter->find(number);
    if (matrix == nullptr) continue;
    if (const LowRankFactors& factors = matrix->low_rank; factors.rank > 0) {
      kernels::ColumnSumsArgs args{.weights = factors.up,
                                   .half = factors.half,
                                   .rows = factors.rank,
                                   .stride = kernels::kColumnGroup,
                                   .group_stride = factors.rank * kernels::kColumnGroup};
      args.count = static_cast<std::int64_t>(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        args.x[i] = rows[i].from + at;
        args.out[i] = added[i].data();
      }
      const std::int64_t whole = kernels::whole_column_groups(end);
      const auto first = static_cast<std::size_t>(factors.up_place(0, begin)) * factors.value_bytes();
      fetch(factors.up + first, (whole - begin) * factors.rank, factors);
      table_.column_sums(args, begin, whole);
      for (std::size_t i = 0; i < rows.size(); ++i) table_.add(rows[i].to + begin, added[i].data(), end - begin);
      at += part.adapter->widest;
    }
    for (const Row& row : rows) {
      for (std::int64_t i = begin; !matrix->magnitude.empty() && i < end; ++i) row.to[i] *= matrix->magnitude[static_cast<std::size_t>(i)];
      for (std::int64_t i = begin; !matrix->bias.empty() && i < end; ++i)
        row.to[i] += part.scale * matrix->bias[static_cast<std::size_t>(i)];
    }
  }
}

void LowRank::embed(const AdapterSet& set, const kernels::PackedMatrix& embedding, std::int32_t token, float* out) const {
  if (const kernels::PackedMatrix* own = replacement(&set, embedding)) table_.unpack_row(*own, token, out);
  for (const AdapterSet::Part& part : set.parts) {
    const AdaptedMatrix* matrix = part.adapter->find(embedding.number);
    if (matrix == nullptr || matrix->low_rank.rank == 0) continue;
    const LowRankFactors& factors = matrix->low_rank;
    const std::byte* row = factors.down + static_cast<std::size_t>(token * factors.down_stride) * factors.value_bytes();
    alignas(64) std::array<float, kBlock> added;
    std::array<float, LowRankFactors::kMostRank> down;
    const float scale = factors.scale * part.scale;
    for (std::int32_t i = 0; i < factors.rank; ++i) {
      float value = 0.0F;
      if (factors.half) {
        value = kernels::bf16_to_float(kernels::load_half(row + 2 * i));
      } else {
        std::memcpy(&value, row + 4 * i, sizeof value);
      }
      down[static_cast<std::size_t>(i)] = value * scale;
    }
    for (std::int64_t begin = 0; begin < embedding.inputs; begin += kBlock) {
      const std::int64_t end = std::min(embedding.inputs, begin + kBlock);
      table_.column_sums({.x = {down.data()},
                          .weights = factors.up,
                          .half = factors.half,
                          .rows = factors.rank,
                          .stride = kernels::kColumnGroup,
                          .group_stride = factors.rank * kernels::kColumnGroup,
                          .out = {added.data()}},
                         begin, kernels::whole_column_groups(end));
      table_.add(out + begin, added.data(), end - begin);
    }
  }
}

}  // namespace braid::model
