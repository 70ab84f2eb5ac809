#include "model/sampling/mass_index.h"

#include "kernels/numerics.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace braid::model {
namespace {

constexpr auto kRun = static_cast<std::size_t>(kernels::kMassRun);

// The largest float below a positive one: x >= value is x > next_below(value).
float next_below(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) - 1); }

std::span<const float> run_of(std::span<const float> weights, std::size_t run) {
  return weights.subspan(run * kRun, std::min(kRun, weights.size() - run * kRun));
}

}  // namespace

MassIndex::MassIndex(const kernels::KernelTable& table, std::int32_t vocab)
    : table_(table), sums_((static_cast<std::size_t>(vocab) + kRun - 1) / kRun) {}

double MassIndex::measure(std::span<const float> weights, Candidate floor) {
  floor_ = floor;
  const auto sum = [&](std::size_t begin, std::size_t end, float threshold) {
    const std::size_t last = std::min(end * kRun, weights.size());
    if (begin < end) table_.masses_above(&weights[begin * kRun], static_cast<std::int64_t>(last - begin * kRun), threshold, &sums_[begin]);
  };
  // Equal weights are better up to the floor's id, so its run is summed token by token.
  const std::size_t run = floor.weight > 0.0F ? std::min(static_cast<std::size_t>(floor.id) / kRun, sums_.size()) : 0;
  if (run > 0) sum(0, run, next_below(floor.weight));
  sum(run, sums_.size(), std::max(floor.weight, 0.0F));
  if (floor.weight > 0.0F && run < sums_.size())
    for (std::size_t id = run * kRun; id < static_cast<std::size_t>(floor.id); ++id)
      if (weights[id] == floor.weight) sums_[run] += static_cast<double>(weights[id]);
  double total = 0.0;
  for (const double mass : sums_) total += mass;
  return total;
}

std::optional<TokenId> MassIndex::find(std::span<const float> weights, double target) const {
  std::optional<std::size_t> chosen;  // what rounding leaves over goes to the last run, and there to the last token, that can have it
  double before = 0.0;
  double sum = 0.0;
  for (std::size_t run = 0; run < sums_.size() && !(sum > target); ++run) {
    if (!(sums_[run] > 0.0)) continue;
    chosen = run;
    before = sum;
    sum += sums_[run];
  }
  if (!chosen) return std::nullopt;
  std::optional<TokenId> last;
  sum = before;
  const std::span<const float> run = run_of(weights, *chosen);
  for (std::size_t i = 0; i < run.size() && !(last && sum > target); ++i) {
    const Candidate candidate{run[i], static_cast<TokenId>(*chosen * kRun + i)};
    if (!(candidate.weight > 0.0F) || !better(candidate, floor_)) continue;
    last = candidate.id;
    sum += static_cast<double>(candidate.weight);
  }
  return last;
}

}  // namespace braid::model
