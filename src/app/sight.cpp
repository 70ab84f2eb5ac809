#include "app/sight.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace braid::app {

std::chrono::milliseconds most_of_step(const BatchOptions& batch) {
  constexpr std::int32_t kMostMs = 10;
  return std::chrono::milliseconds(std::min(kMostMs, batch.prefill_slice_ms));
}

std::unique_ptr<sched::SeeingEngine> make_seeing(boost::asio::io_context& loop, sched::ComputeStrand& strand, const LoadedModel& loaded,
                                                 const BatchOptions& batch, sched::Scheduler& scheduler,
                                                 const sched::SchedulerOptions& options) {
  if (loaded.eyes.tower == nullptr) return nullptr;
  model::ImageTower& tower = *loaded.eyes.tower;
  const model::TowerShape& shape = tower.shape();
  const sched::SightRules rules{.width = tower.width() * (1 + static_cast<std::int64_t>(shape.deep.size())),
                                .revision = tower.weights().revision,
                                .grid_pixels = shape.grid_positions ? shape.patch * shape.connector.side : 0,
                                .longest_span = shape.both_ways ? model::LoadOptions().pass_rows : 0};
  sched::ImageOptions images{.kept_bytes = batch.image_cache,
                             .priority_ageing = batch.priority_ageing,
                             .most_of_step = most_of_step(batch),
                             .before_steps = [team = &tower.team()] { team->pin_strand(); }};
  return std::make_unique<sched::SeeingEngine>(loop, strand, tower, rules, std::move(images), scheduler, options);
}

}  // namespace braid::app
