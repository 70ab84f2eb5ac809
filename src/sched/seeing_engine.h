// The engine of a model that sees: a scheduler's, behind a queue of images. A request with images waits until all of them are vectors.
#pragma once

#include "braid/engine.h"
#include "sched/image_queue.h"
#include "sched/scheduler.h"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace braid::sched {

// What a tower is to the engine.
struct SightRules {
  std::int64_t width = 0;                   // numbers that the language model takes for a token
  std::array<std::uint64_t, 2> revision{};  // of the tower: cached blocks behind an image are those of the same one
  std::int32_t grid_pixels = 0;   // of the side of what one vector shows, where rotary positions follow rows and columns; 0: they do not
  std::int32_t longest_span = 0;  // tokens that a span may have; 0: any number
};

// Loop only. What it is given outlives it, and so do its tickets not need to.
class SeeingEngine final : public Engine {
 public:
  SeeingEngine(boost::asio::io_context& loop, ComputeStrand& strand, step::ImageEncoder& encoder, const SightRules& rules,
               ImageOptions images, Scheduler& scheduler, const SchedulerOptions& options);
  ~SeeingEngine() override;

  // As the scheduler's, before an image is looked at; also kInvalidArgument for images that the model does not read.
  Result<Ticket> submit(GenerationRequest request) override;
  Result<void> check_queue(std::size_t requests, std::int32_t priority) override;
  std::shared_ptr<const void> reserve() override { return scheduler_.reserve(); }
  EngineStats stats() const override;
  bool cancel(std::string_view id) override;
  std::int32_t forget_prefixes() override { return scheduler_.forget_prefixes(); }
  std::vector<SequenceSnapshot> sequences(std::size_t limit) const override;

  // As the scheduler's.
  void begin_drain();
  boost::asio::awaitable<bool> drained(std::chrono::steady_clock::time_point until);
  void abort_remaining(const Error& reason);
  void change_weights(const std::function<std::optional<AdapterUse>(const AdapterUse&)>& newer);
  void end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason);

  const ImageQueue& images() const { return images_; }

 private:
  class SeeingTicket;

  Result<void> check(const GenerationRequest& request) const;
  void describe_media(GenerationRequest& request) const;
  void leave(SeeingTicket& ticket);
  void fail(SeeingTicket& ticket, const Error& error);

  const SightRules rules_;
  const step::ImageEncoder& encoder_;
  Scheduler& scheduler_;
  const SchedulerOptions options_;
  std::list<SeeingTicket*> waiting_;  // for images, oldest first
  std::optional<Error> refusal_;      // of new work
  boost::asio::steady_timer drain_deadline_;
  ImageQueue images_;
};

}  // namespace braid::sched
