#include "model/rank_gather.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace braid::model {
namespace {

// Adds to `seconds` what passes until its end.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds) {}
  ~Timed() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

void RankGather::gather(std::span<const PreparedProduct> products) {
  if (std::ranges::all_of(products, [](const PreparedProduct& product) { return product.product.stays_apart; })) return;
  gather_parts(products.size(), [&](std::int32_t rank, std::size_t i) {
    const PreparedProduct& product = products[i];
    if (product.product.stays_apart) return Columns{};
    const kernels::PackedMatrix& weights = *product.product.weights;
    const kernels::PanelRange panels = share_.panels_of(rank, weights.panels());
    return Columns{.rows = product.product.out,
                   .count = product.rows,
                   .begin = std::min(weights.outputs, panels.begin * kernels::kPanel),
                   .end = std::min(weights.outputs, panels.end * kernels::kPanel)};
  });
}

void RankGather::gather(const Rows& rows, std::int64_t count, std::int64_t width) {
  gather_parts(1, [&](std::int32_t rank, std::size_t) {
    return Columns{.rows = rows, .count = count, .begin = rank * width, .end = (rank + 1) * width};
  });
}

void RankGather::pass_on(const Rows& rows, std::int64_t count, std::int64_t width) {
  own_.resize(static_cast<std::size_t>(count * width));
  for (std::int64_t row = 0; row < count; ++row) std::copy_n(rows[row], width, own_.data() + row * width);
  const Timed timed(seconds_);
  relay_->pass_on(own_);
}

void RankGather::take(const Rows& rows, std::int64_t count, std::int64_t width) {
  all_.resize(static_cast<std::size_t>(count * width));
  {
    const Timed timed(seconds_);
    relay_->take(all_);
  }
  for (std::int64_t row = 0; row < count; ++row) std::copy_n(all_.data() + row * width, width, rows[row]);
}

template <class ColumnsOf>
void RankGather::gather_parts(std::size_t parts, ColumnsOf&& columns_of) {
  counts_.assign(static_cast<std::size_t>(share_.ranks), 0);
  for (std::int32_t rank = 0; rank < share_.ranks; ++rank)
    for (std::size_t i = 0; i < parts; ++i) counts_[static_cast<std::size_t>(rank)] += columns_of(rank, i).values();
  own_.resize(counts_[static_cast<std::size_t>(share_.rank)]);
  all_.resize(std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}));
  float* out = own_.data();
  for (std::size_t i = 0; i < parts; ++i) {
    const Columns columns = columns_of(share_.rank, i);
    for (std::int64_t row = 0; row < columns.count; ++row) out = std::copy_n(columns.rows[row] + columns.begin, columns.width(), out);
  }
  const Timed timed(seconds_);
  exchange_->gather(own_, counts_, all_);
  const float* in = all_.data();
  for (std::int32_t rank = 0; rank < share_.ranks; ++rank) {
    if (rank == share_.rank) {
      in += counts_[static_cast<std::size_t>(rank)];
      continue;
    }
    for (std::size_t i = 0; i < parts; ++i) {
      const Columns columns = columns_of(rank, i);
      for (std::int64_t row = 0; row < columns.count; ++row, in += columns.width())
        std::copy_n(in, columns.width(), columns.rows[row] + columns.begin);
    }
  }
}

}  // namespace braid::model
