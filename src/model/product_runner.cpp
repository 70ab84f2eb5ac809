#include "model/product_runner.h"

namespace braid::model {
namespace {

// Claims of a product that each member makes, so that a slow one does not hold the others up. Each reads all prepared rows, so there are few
// where these do not stay in a second-level cache.
constexpr std::int64_t kClaimsEach = 8;
constexpr std::int64_t kUncachedClaimsEach = 2;
constexpr std::size_t kCachedRowBytes = 1280 << 10;

}  // namespace

// The panels of several products as one range, of which a member of the team claims: those of one product at a time.
class ProductRunner::ClaimedPanels {
 public:
  ClaimedPanels(std::span<const PreparedProduct> products, const Share& share, kernels::ThreadTeam::Claims& claims)
      : products_(products), share_(share), claims_(claims) {}

  // The next product that has some; null: there are no more.
  const PreparedProduct* next_product() {
    if (!has_panels()) return nullptr;
    offset_ = 0;
    for (const PreparedProduct& product : products_) {
      const kernels::PanelRange own = share_.panels(product.product.weights->panels());
      first_ = own.begin;
      end_ = offset_ + own.end - own.begin;
      if (begin_ < end_) return &product;
      offset_ = end_;
    }
    return nullptr;
  }

  // Those of that product, as long as claims stay with it.
  kernels::PanelSource source() {
    return {[](void* context, kernels::PanelRange& range) { return static_cast<ClaimedPanels*>(context)->next(range); }, this};
  }

 private:
  bool has_panels() { return begin_ < claimed_ || claims_.next(begin_, claimed_); }

  bool next(kernels::PanelRange& range) {
    if (!has_panels() || begin_ < offset_ || begin_ >= end_) return false;
    const std::int64_t end = std::min(claimed_, end_);
    range = {first_ + begin_ - offset_, first_ + end - offset_};
    begin_ = end;
    return true;
  }

  const std::span<const PreparedProduct> products_;
  const Share& share_;
  kernels::ThreadTeam::Claims& claims_;
  std::int64_t begin_ = 0;  // claimed and not handed out yet
  std::int64_t claimed_ = 0;
  std::int64_t first_ = 0;   // of the product's panels that are this rank's
  std::int64_t offset_ = 0;  // and their place in the range
  std::int64_t end_ = 0;
};

void ProductRunner::find_replaced(std::span<const Product> group, std::int64_t rows, std::int64_t first_row, AdaptedRows& adapted) const {
  adapted.replaced.begin(slot_of(rows, 0, group.size()));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < group.size(); ++i)
      if (const auto* own = LowRank::replacement(adapted.of_row(first_row + row), *group[i].weights))
        adapted.replaced.add(slot_of(row, i, group.size()), *own, group[i].out[row], group[i].stays_apart);
  adapted.replaced.lay_out(table_);
}

void ProductRunner::run_replaced(Workspace& space) const {
  ReplacedProducts& replaced = space.adapted.replaced;
  if (!replaced.any()) return;
  run_prepared(replaced.products());
  replaced.deliver(team_);
  replaced.begin(0);  // a pass without adapters adds none, and theirs may be gone by then
}

// The panels of all products form one range, from which the team claims.
void ProductRunner::run_prepared(std::span<const PreparedProduct> products) const {
  if (products.empty()) return;
  const Share share = ranks_ != nullptr ? ranks_->share() : Share{};
  std::int64_t panels = 0;
  for (const PreparedProduct& prepared : products) {
    const kernels::PanelRange own = share.panels(prepared.product.weights->panels());
    panels += own.end - own.begin;
  }
  const kernels::PackedMatrix& first = *products.front().product.weights;
  const bool cached = table_.prepared_bytes(first.type, first.inputs, products.front().rows) <= kCachedRowBytes;
  const std::int64_t parts = (cached ? kClaimsEach : kUncachedClaimsEach) * team_.size();
  const std::int64_t chunk = std::max<std::int64_t>(2, panels / parts / 2 * 2);
  team_.for_claims(panels, chunk, [&](kernels::ThreadTeam::Claims& claims, int) {
    ClaimedPanels claimed(products, share, claims);
    while (const PreparedProduct* next = claimed.next_product()) {
      const Product& product = next->product;
      const kernels::MatmulArgs args{
          .weights = product.weights,
          .prepared = next->prepared,
          .rows = next->rows,
          .out = product.out.data,
          .out_stride = product.out.stride,
          .accumulate = product.accumulate,
          .past_caches = next->rows * product.weights->outputs * std::int64_t{sizeof(float)} >= table_.large_results,
          .side_by_side = table_.side_by_side,
          .up = product.up};
      table_.matmul(args, claimed.source());
    }
  });
  if (ranks_ != nullptr && ranks_->is_needed()) ranks_->gather(products);
}

}  // namespace braid::model
