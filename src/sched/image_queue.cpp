#include "sched/image_queue.h"

#include <exception>
#include <fmt/format.h>
#include <utility>

namespace braid::sched {

using Clock = std::chrono::steady_clock;

ImageQueue::Wish::~Wish() {
  if (queue_ != nullptr) queue_->leave(*this);
}

void ImageQueue::Executor::execute(const step::StepPlan&, step::StepResult&) {
  if (options_.before_steps) options_.before_steps();
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  if (!pass) pass = encoder_.begin(std::move(pixels));
  bool goes_on = true;
  do {
    goes_on = pass->advance();
    now = Clock::now();
  } while (goes_on && now - begin < options_.most_of_step);
  seconds += std::chrono::duration<double>(now - begin).count();
  if (goes_on) return;
  vectors = std::make_shared<const std::vector<float>>(pass->take());
  pass.reset();
}

ImageQueue::ImageQueue(ComputeStrand& strand, step::ImageEncoder& encoder, ImageOptions options)
    : options_(std::move(options)), executor_(encoder, options_), lane_(
                                                                      strand, executor_, [this] { on_returned(); }, [this] { pump(); }) {}

ImageQueue::~ImageQueue() {
  for (auto& [key, job] : jobs_)
    for (Wish* wish : job.wishes) wish->queue_ = nullptr;
}

ImageStats ImageQueue::stats() const {
  return {.encoded = computed_,
          .found = found_,
          .encode_seconds = seconds_,
          .waiting = static_cast<std::uint32_t>(jobs_.size()),
          .kept_bytes = kept_bytes_};
}

MediaVectors ImageQueue::find(const Key& key) {
  const auto found = kept_.find(key);
  if (found == kept_.end()) return nullptr;
  ++found_;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.vectors;
}

Result<std::unique_ptr<ImageQueue::Wish>> ImageQueue::ask(const Key& key, SharedPixels pixels, std::int32_t priority, Arrived arrived) {
  auto job = jobs_.find(key);
  if (job == jobs_.end()) {
    if (waiting_.size() >= options_.most_waiting)
      return Error{ErrorCode::kOverloaded, fmt::format("{} images wait to be looked at already; try again later", waiting_.size()), {}};
    const Rank rank(Clock::now(), priority, options_.priority_ageing, next_serial_++);
    job = jobs_.emplace(key, Job{std::move(pixels), rank, {}}).first;
    waiting_.emplace(rank, key);
  }
  auto wish = std::make_unique<Wish>();
  wish->queue_ = this;
  wish->key_ = key;
  wish->arrived_ = std::move(arrived);
  wish->self_ = job->second.wishes.insert(job->second.wishes.end(), wish.get());
  pump();
  return wish;
}

// An image that nobody wants any more is not begun. What is computed is left when its step is back.
void ImageQueue::leave(Wish& wish) {
  const auto job = jobs_.find(wish.key_);
  job->second.wishes.erase(wish.self_);
  if (!job->second.wishes.empty() || running_ == wish.key_) return;
  waiting_.erase(job->second.rank);
  jobs_.erase(job);
}

// One step is out at a time, so that the pass has one owner.
void ImageQueue::pump() {
  if (!lane_.idle()) return;
  if (!running_ && waiting_.empty()) return lane_.pass();
  if (!lane_.take_turn()) return;
  if (!running_) {
    running_ = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    executor_.pixels = jobs_.at(*running_).pixels;
  }
  lane_.next_plan();
  lane_.post();
}

void ImageQueue::on_returned() {
  std::exception_ptr failure;
  while (const Step* step = lane_.returned()) {
    failure = step->result.failure;
    lane_.pop();
  }
  seconds_ = executor_.seconds;
  if (failure) {
    end_pass(Error{ErrorCode::kInternal, "looking at an image failed inside the server", {}});
  } else if (executor_.vectors != nullptr && executor_.vectors->empty()) {
    end_pass(Error{ErrorCode::kInternal, "the model's numbers for an image are none", {}});
  } else if (const MediaVectors vectors = executor_.vectors) {
    ++computed_;
    keep(*running_, vectors);
    end_pass(vectors);
  } else if (jobs_.at(*running_).wishes.empty()) {
    end_pass(MediaVectors());
  }
  pump();
}

// Who is told may drop other wishes, and ask for more.
void ImageQueue::end_pass(const Result<MediaVectors>& result) {
  executor_.pass.reset();
  executor_.pixels.reset();
  executor_.vectors.reset();
  const auto job = jobs_.find(*running_);
  while (!job->second.wishes.empty()) {
    Wish& wish = *job->second.wishes.front();
    job->second.wishes.pop_front();
    wish.queue_ = nullptr;
    const Arrived arrived = std::move(wish.arrived_);
    arrived(result);
  }
  jobs_.erase(job);
  running_.reset();
}

void ImageQueue::keep(const Key& key, const MediaVectors& vectors) {
  const std::size_t bytes = vectors->size() * sizeof(float);
  if (bytes > options_.kept_bytes) return;
  while (kept_bytes_ + bytes > options_.kept_bytes) {
    const auto oldest = kept_.find(uses_.back());
    kept_bytes_ -= oldest->second.vectors->size() * sizeof(float);
    kept_.erase(oldest);
    uses_.pop_back();
  }
  uses_.push_front(key);
  kept_.emplace(key, Kept{vectors, uses_.begin()});
  kept_bytes_ += bytes;
}

}  // namespace braid::sched
