// Images on their way to vectors: they wait in a queue, one at a time is computed, and left after a few milliseconds, so that nobody's next
// token waits for more than that. What became of them is kept while there is room.
#pragma once

#include "braid/engine_stats.h"
#include "braid/media_span.h"
#include "braid/pixels.h"
#include "braid/result.h"
#include "sched/compute_strand.h"
#include "sched/rank.h"
#include "sched/strand_lane.h"
#include "step/image_encoder.h"
#include "step/step.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace braid::sched {

struct ImageOptions {
  std::size_t kept_bytes = std::size_t{256} << 20;    // of vectors of images, the one used longest ago going first
  std::size_t most_waiting = 1024;                    // images; the next one is refused with kOverloaded
  std::chrono::milliseconds priority_ageing{10'000};  // as SchedulerOptions::priority_ageing
  std::chrono::microseconds most_of_step{10'000};     // of the strand's time, before others have their turn
  std::function<void()> before_steps = {};            // if any, called on the strand when a step begins
};

// Loop only. Strand and encoder outlive it.
class ImageQueue {
 public:
  // What an image is known by, and whoever may share what becomes of it.
  using Key = std::array<std::uint64_t, 2>;
  using Arrived = std::function<void(const Result<MediaVectors>&)>;

  // One of those who wait for an image. Destroying it cancels: `arrived` is not called then.
  class Wish {
   public:
    ~Wish();

   private:
    friend ImageQueue;
    ImageQueue* queue_ = nullptr;  // null once it has been answered
    Key key_{};
    std::list<Wish*>::iterator self_;
    Arrived arrived_;
  };

  ImageQueue(ComputeStrand& strand, step::ImageEncoder& encoder, ImageOptions options);
  ~ImageQueue();

  // What became of an image, if it is kept.
  MediaVectors find(const Key& key);
  // Calls `arrived` later, never within this. kOverloaded.
  Result<std::unique_ptr<Wish>> ask(const Key& key, SharedPixels pixels, std::int32_t priority, Arrived arrived);

  std::size_t kept_bytes() const { return kept_bytes_; }
  ImageStats stats() const;
  double running_seconds() const { return lane_.running_seconds(); }

 private:
  struct Job {
    SharedPixels pixels;
    Rank rank;
    std::list<Wish*> wishes;
  };

  // Of the strand while a step is out, of the loop otherwise.
  class Executor final : public step::StepExecutor {
   public:
    Executor(step::ImageEncoder& encoder, const ImageOptions& options) : encoder_(encoder), options_(options) {}
    void execute(const step::StepPlan& plan, step::StepResult& result) override;

    SharedPixels pixels;  // of a pass that is to begin
    std::unique_ptr<step::ImagePass> pass;
    MediaVectors vectors;  // of a pass that is done; empty ones: a number of them is none
    double seconds = 0.0;  // of all steps

   private:
    step::ImageEncoder& encoder_;
    const ImageOptions& options_;
  };

  struct Kept {
    MediaVectors vectors;
    std::list<Key>::iterator use;
  };

  void pump();
  void on_returned();
  void end_pass(const Result<MediaVectors>& result);
  void keep(const Key& key, const MediaVectors& vectors);
  void leave(Wish& wish);

  const ImageOptions options_;
  std::map<Key, Job> jobs_;  // also the one that is computed
  std::map<Rank, Key> waiting_;
  std::optional<Key> running_;
  std::uint64_t next_serial_ = 0;
  std::uint64_t computed_ = 0;
  std::uint64_t found_ = 0;
  double seconds_ = 0.0;  // the executor's, as of the last step that has come back
  std::map<Key, Kept> kept_;
  std::list<Key> uses_;  // of what is kept, the latest first
  std::size_t kept_bytes_ = 0;
  Executor executor_;
  StrandLane lane_;  // last: its step has ended before anything that it names is destroyed
};

}  // namespace braid::sched
