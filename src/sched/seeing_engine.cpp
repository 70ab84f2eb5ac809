#include "sched/seeing_engine.h"

#include "cache/prefix_index.h"
#include "sched/limits.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace braid::sched {

namespace asio = boost::asio;

// Of a request whose images are on their way, then the scheduler's.
class SeeingEngine::SeeingTicket final : public TokenSource {
 public:
  SeeingTicket(SeeingEngine& engine, GenerationRequest request)
      : engine_(&engine), request_(std::move(request)), vectors_(request_.images.size()), wishes_(request_.images.size()),
        self_(engine.waiting_.insert(engine.waiting_.end(), this)) {}
  ~SeeingTicket() override { leave(); }

  std::optional<TokenEvent> try_next() override {
    if (inner_) return inner_->try_next();
    if (!end_) return std::nullopt;
    return std::exchange(end_, std::nullopt);
  }
  Signal& arrived() override { return inner_ ? inner_->arrived() : arrived_; }
  void cancel() override {
    leave();
    end_.reset();
    inner_ ? inner_->cancel() : arrived_.notify();
  }
  void complete() override { inner_ ? inner_->complete() : cancel(); }
  std::int32_t cached_tokens() const override { return inner_ ? inner_->cached_tokens() : 0; }
  Drafts drafts() const override { return inner_ ? inner_->drafts() : Drafts(); }
  double queue_ms() const override { return waited_ms_ + (inner_ ? inner_->queue_ms() : 0.0); }
  bool started() const override { return inner_ && inner_->started(); }

 private:
  friend SeeingEngine;

  // kOverloaded: it cannot wait for its images.
  Result<void> look() {
    for (std::size_t i = 0; i < vectors_.size(); ++i) {
      const SharedPixels& image = request_.images[i];
      const ImageQueue::Key key = key_of(*image);
      if ((vectors_[i] = engine_->images_.find(key))) continue;
      auto wish =
          engine_->images_.ask(key, image, request_.priority, [this, i](const Result<MediaVectors>& vectors) { on_image(i, vectors); });
      if (!wish) return wish.error();
      wishes_[i] = std::move(*wish);
    }
    return {};
  }

  // As cached prefixes are, what became of an image is shared with requests of the same salt alone.
  ImageQueue::Key key_of(const Pixels& image) const {
    if (request_.cache_salt.empty()) return image.digest;
    std::string all = request_.cache_salt;
    all.append(reinterpret_cast<const char*>(image.digest.data()), sizeof(image.digest));
    const cache::PrefixKey key = cache::xxh3_key(std::as_bytes(std::span(all)));
    return {key.high, key.low};
  }

  bool has_all() const {
    return std::ranges::all_of(vectors_, [](const MediaVectors& vectors) { return vectors != nullptr; });
  }

  void on_image(std::size_t index, const Result<MediaVectors>& vectors) {
    if (!vectors) return engine_->fail(*this, vectors.error());
    vectors_[index] = *vectors;
    if (!has_all()) return;
    SeeingEngine& engine = *engine_;
    Result<Ticket> ticket = engine.scheduler_.submit(take_request());
    if (!ticket) return engine.fail(*this, ticket.error());
    inner_ = std::move(*ticket);
    leave();
    arrived_.notify();
  }

  // With what became of its images.
  GenerationRequest take_request() {
    waited_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since_).count();
    auto span = request_.media.begin();
    for (std::size_t i = 0; i < vectors_.size(); ++i)
      for (std::int64_t begin = 0; begin < request_.images[i]->vectors; begin += span++->count)
        request_.media_vectors.push_back({vectors_[i], begin});
    request_.images.clear();
    return std::move(request_);
  }

  // It waits no longer.
  void leave() {
    wishes_.clear();
    if (engine_ == nullptr) return;
    std::exchange(engine_, nullptr)->leave(*this);
  }

  SeeingEngine* engine_;  // while it waits
  GenerationRequest request_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  double waited_ms_ = 0.0;
  std::vector<MediaVectors> vectors_;  // of each image, null while they are awaited
  std::vector<std::unique_ptr<ImageQueue::Wish>> wishes_;
  const std::list<SeeingTicket*>::iterator self_;
  std::optional<TokenEvent> end_;  // because of an error
  Ticket inner_;
  Signal arrived_;
};

SeeingEngine::SeeingEngine(asio::io_context& loop, ComputeStrand& strand, step::ImageEncoder& encoder, const SightRules& rules,
                           ImageOptions images, Scheduler& scheduler, const SchedulerOptions& options)
    : rules_(rules), encoder_(encoder), scheduler_(scheduler), options_(options), drain_deadline_(loop),
      images_(strand, encoder, std::move(images)) {}

SeeingEngine::~SeeingEngine() {
  while (!waiting_.empty()) fail(*waiting_.front(), {ErrorCode::kDraining, "the server is shutting down", {}});
}

// Spans and images have to say the same, and the scheduler what it would say without images.
Result<void> SeeingEngine::check(const GenerationRequest& request) const {
  if (const Result<std::int32_t> room = answer_room(request, options_); !room) return room.error();
  const auto is_same = [&](const SeeingTicket* ticket) { return ticket->request_.id == request.id; };
  if (!request.id.empty() && (scheduler_.find(request.id) || std::ranges::any_of(waiting_, is_same)))
    return invalid_argument(fmt::format("a request with the id {} is running already", request.id), "id");
  std::size_t span = 0;
  for (const SharedPixels& image : request.images) {
    if (const Result<void> sound = encoder_.check(*image); !sound) return sound.error();
    std::int64_t tokens = 0;
    for (; span < request.media.size() && tokens < image->vectors; ++span) {
      tokens += request.media[span].count;
      if (rules_.longest_span > 0 && request.media[span].count > rules_.longest_span)
        return invalid_argument(
            fmt::format("an image stands for {} tokens, and at most {} are read together", request.media[span].count, rules_.longest_span));
    }
    if (tokens != image->vectors || (rules_.grid_pixels > 0 && request.media[span - 1].count != image->vectors))
      return invalid_argument(fmt::format("{} tokens of the prompt stand for an image of {}", tokens, image->vectors));
  }
  if (span != request.media.size()) return invalid_argument("tokens of the prompt stand for an image that is not there");
  return {};
}

// What blocks and rotary positions behind the images depend on.
void SeeingEngine::describe_media(GenerationRequest& request) const {
  for (MediaSpan& span : request.media) {
    const std::array<std::uint64_t, 4> all{span.digest[0], span.digest[1], rules_.revision[0], rules_.revision[1]};
    const cache::PrefixKey key = cache::xxh3_key(std::as_bytes(std::span(all)));
    span.digest = {key.high, key.low};
  }
  if (rules_.grid_pixels == 0) return;
  for (const SharedPixels& image : request.images) {
    const PixelTile& tile = image->tiles.front();
    request.media_grids.push_back({tile.height / rules_.grid_pixels, tile.width / rules_.grid_pixels});
  }
}

Result<void> SeeingEngine::check_queue(std::size_t requests, std::int32_t priority) { return scheduler_.check_queue(requests, priority); }

Result<Ticket> SeeingEngine::submit(GenerationRequest request) {
  if (request.images.empty() && request.reservation != nullptr) return scheduler_.submit(std::move(request));
  if (refusal_) return *refusal_;
  if (request.images.empty()) return scheduler_.submit(std::move(request));
  if (const Result<void> sound = check(request); !sound) return sound.error();
  if (const Result<void> fits = check_queue(1, request.priority); !fits) return fits.error();
  describe_media(request);
  auto ticket = std::make_unique<SeeingTicket>(*this, std::move(request));
  if (const Result<void> looks = ticket->look(); !looks) return looks.error();
  if (!ticket->has_all()) return Ticket(std::move(ticket));
  return scheduler_.submit(ticket->take_request());
}

void SeeingEngine::leave(SeeingTicket& ticket) {
  waiting_.erase(ticket.self_);
  if (!refusal_ || !waiting_.empty()) return;
  scheduler_.begin_drain();
  drain_deadline_.cancel();
}

void SeeingEngine::fail(SeeingTicket& ticket, const Error& error) {
  const bool is_drained = error.code == ErrorCode::kDraining || error.code == ErrorCode::kCancelled;
  Finish finish{.reason = is_drained ? FinishReason::kCancelled : FinishReason::kError, .usage = {}, .error = error};
  finish.usage.prompt_tokens = static_cast<std::int32_t>(ticket.request_.prompt.size());
  ticket.end_ = std::move(finish);
  ticket.leave();
  ticket.arrived_.notify();
}

EngineStats SeeingEngine::stats() const {
  EngineStats stats = scheduler_.stats();
  stats.running_step_seconds = std::max(stats.running_step_seconds, images_.running_seconds());
  stats.images = images_.stats();
  for (const SeeingTicket* ticket : waiting_) {
    const std::int32_t priority = ticket->request_.priority;
    ++stats.waiting;
    ++(priority < 0 ? stats.waiting_better : priority > 0 ? stats.waiting_worse : stats.waiting_normal);
  }
  return stats;
}

bool SeeingEngine::cancel(std::string_view id) {
  const auto found = std::ranges::find_if(waiting_, [id](const SeeingTicket* ticket) { return ticket->request_.id == id; });
  if (id.empty() || found == waiting_.end()) return scheduler_.cancel(id);
  fail(**found, {ErrorCode::kCancelled, "the request was aborted", {}});
  return true;
}

std::vector<SequenceSnapshot> SeeingEngine::sequences(std::size_t limit) const {
  std::vector<SequenceSnapshot> snapshots = scheduler_.sequences(limit);
  for (const SeeingTicket* ticket : waiting_) {
    if (snapshots.size() >= limit) break;
    const GenerationRequest& request = ticket->request_;
    snapshots.push_back({.id = request.id,
                         .phase = "waiting",
                         .priority = request.priority,
                         .prompt_tokens = static_cast<std::int32_t>(request.prompt.size()),
                         .max_tokens = request.stop.max_tokens,
                         .queue_position = static_cast<std::uint32_t>(snapshots.size() + 1)});
  }
  return snapshots;
}

void SeeingEngine::begin_drain() {
  refusal_ = Error{ErrorCode::kDraining, "the server is shutting down and takes no new requests", {}};
  if (waiting_.empty()) scheduler_.begin_drain();
}

asio::awaitable<bool> SeeingEngine::drained(std::chrono::steady_clock::time_point until) {
  drain_deadline_.expires_at(until);
  if (!waiting_.empty()) co_await drain_deadline_.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!waiting_.empty()) co_return false;
  auto rest = scheduler_.drained(until);
  co_return co_await std::move(rest);
}

void SeeingEngine::abort_remaining(const Error& reason) {
  refusal_ = reason;
  while (!waiting_.empty()) fail(*waiting_.front(), reason);
  scheduler_.abort_remaining(reason);
}

// What of them has been seen stays: the tower has weights of its own.
void SeeingEngine::change_weights(const std::function<std::optional<AdapterUse>(const AdapterUse&)>& newer) {
  for (SeeingTicket* ticket : waiting_)
    if (std::optional<AdapterUse> next = newer(ticket->request_.adapter)) ticket->request_.adapter = std::move(*next);
  scheduler_.change_weights(newer);
}

void SeeingEngine::end_users(const std::function<bool(const AdapterUse&)>& is_such, const Error& reason) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    SeeingTicket& ticket = **at++;  // fail() takes it out
    if (is_such(ticket.request_.adapter)) fail(ticket, reason);
  }
  scheduler_.end_users(is_such, reason);
}

}  // namespace braid::sched
