#include "model/adapters/low_rank.h"

#include "kernels/cache_hints.h"
#include "kernels/half.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace braid::model {
namespace {

constexpr std::int64_t kItemsEach = 2;  // blocks of outputs that are claimed together

// Matrices of adapters are small, and lie in no cache. So each, or the part of it that is read, is asked for beside the sums before, and as a
// whole where nobody has done so; halves are so few bytes that this costs more than it brings. Inlined, because g++ 12 takes a function that
// does nothing else for pure, and drops the call.
[[gnu::always_inline]] inline void fetch(const std::byte* from, std::int64_t values, const LowRankFactors& factors,
                                         const std::byte* fetched) {
  if (from == fetched || factors.half) return;
  constexpr std::int64_t kMostLines = 1024;
  kernels::prefetch_lines<kernels::kFirstLevel>(from, std::min(kMostLines, values / 16));
}

// Of what is read after the last part of a set, where that lies as its `factors` do; null: it does not.
const LowRankFactors* alike(const LowRank::Reading& reading, const LowRankFactors& factors, bool is_last) {
  const AdaptedMatrix* matrix = is_last && reading.next != nullptr ? reading.next->whole(reading.number) : nullptr;
  if (matrix == nullptr) return nullptr;
  const LowRankFactors& next = matrix->low_rank;
  return next.rank == factors.rank && next.half == factors.half && next.inputs == factors.inputs ? &next : nullptr;
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
                   AdaptedRows& adapted, const AdapterSet* next, Reading& reading) const {
  const AdapterSet& set = *adapted.of_row(rows.front());
  const auto count = static_cast<std::int64_t>(products.size());
  std::array<Row, kMostRows> all;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t r = 0; r < rows.size(); ++r) all[r] = {x[r], adapted.down((rows[r] - first_row) * count + i)};
    const bool is_last = i + 1 == count;
    reading.next = is_last ? next : &set;
    reading.number = products[static_cast<std::size_t>(is_last ? 0 : i + 1)].weights->number;
    down(set, products[static_cast<std::size_t>(i)].weights->number, std::span(all).first(rows.size()), reading);
  }
}

void LowRank::up(std::span<const Product> products, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const {
  const auto count = static_cast<std::int64_t>(products.size());
  const std::int64_t widest = widest_of(products);
  const std::int64_t blocks = blocks_of(widest);
  const std::span<const std::span<const std::int32_t>> runs = adapted.runs();
  const auto in_order = static_cast<std::int64_t>(runs.size());
  // Those of one adapter one after the other, so that a block of its matrix stays in the nearest cache.
  const auto run_of = [&](std::int64_t item) { return runs[static_cast<std::size_t>(item % in_order)]; };
  const auto place_of = [&](std::int64_t item) { return item / in_order / blocks; };
  const auto first_of = [&](std::int64_t item) { return item / in_order % blocks * kBlock; };
  const auto is_empty = [&](std::int64_t item) {
    return first_of(item) >= products[static_cast<std::size_t>(place_of(item))].weights->outputs;
  };
  const std::int64_t items = count * blocks * in_order;
  team_.for_claims(items, kItemsEach, [&](kernels::ThreadTeam::Claims& claims, int) {
    Reading reading;
    for (std::int64_t from = 0, to = 0; claims.next(from, to);)
      for (std::int64_t item = from; item < to; ++item) {
        const std::span<const std::int32_t> run = run_of(item);
        const std::int64_t place = place_of(item);
        const std::int64_t first = first_of(item);
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
        std::int64_t next = item + 1;
        while (next < items && is_empty(next)) ++next;
        reading.next = nullptr;
        if (next < items) {
          reading.next = adapted.of_row(run_of(next).front());
          reading.number = products[static_cast<std::size_t>(place_of(next))].weights->number;
          reading.begin = first_of(next);
        }
        up(set, product.weights->number, std::span(all).first(used), first, end, reading);
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

void LowRank::down(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, Reading& reading) const {
  std::int64_t at = 0;
  for (const AdapterSet::Part& part : set.parts) {
    const AdaptedMatrix* matrix = part.adapter->find(number);
    if (matrix != nullptr && !matrix->tokens.empty()) own_tokens(*matrix, rows);
    if (matrix == nullptr || matrix->low_rank.rank == 0) continue;
    const LowRankFactors& factors = matrix->low_rank;
    kernels::ColumnSumsArgs args{.weights = factors.down, .half = factors.half, .rows = factors.inputs, .stride = factors.down_stride};
    args.count = static_cast<std::int64_t>(rows.size());
    fetch(factors.down, factors.inputs * factors.down_stride, factors, reading.fetched);
    const LowRankFactors* const next = alike(reading, factors, &part == &set.parts.back());
    args.next = reading.fetched = next != nullptr ? next->down : nullptr;
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

// What a head's own rows give, which is put in the place of what the base's gave.
void LowRank::own_tokens(const AdaptedMatrix& head, std::span<const Row> rows) const {
  const std::int64_t stride = kernels::whole_column_groups(std::ssize(head.tokens));
  kernels::ColumnSumsArgs args{
      .weights = reinterpret_cast<const std::byte*>(head.rows.data()), .rows = std::ssize(head.rows) / stride, .stride = stride};
  args.count = static_cast<std::int64_t>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    args.x[i] = rows[i].from;
    args.out[i] = rows[i].to;
  }
  table_.column_sums(args, 0, stride);
}

void LowRank::up(const AdapterSet& set, std::uint32_t number, std::span<const Row> rows, std::int64_t begin, std::int64_t end,
                 Reading& reading) const {
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
      fetch(factors.up + first, (whole - begin) * factors.rank, factors, reading.fetched);
      const LowRankFactors* const next = alike(reading, factors, &part == &set.parts.back());
      reading.fetched =
          next != nullptr ? next->up + static_cast<std::size_t>(next->up_place(0, reading.begin)) * next->value_bytes() : nullptr;
      args.next = reading.fetched;
      table_.column_sums(args, begin, whole);
      for (std::size_t i = 0; i < rows.size(); ++i) table_.add(rows[i].to + begin, added[i].data(), end - begin);
      at += part.adapter->widest;
    }
    for (const Row& row : rows) {
      const std::vector<std::int32_t>& tokens = matrix->tokens;
      for (auto token = std::ranges::lower_bound(tokens, begin); token != tokens.end() && *token < end; ++token)
        row.to[*token] = row.from[token - tokens.begin()];
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
    if (matrix != nullptr)
      if (const auto own = std::ranges::lower_bound(matrix->tokens, token); own != matrix->tokens.end() && *own == token)
        std::copy_n(matrix->rows.begin() + (own - matrix->tokens.begin()) * embedding.inputs, embedding.inputs, out);
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
