#include "net/generation/choice_streams.h"

#include "net/log/failure.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <exception>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxQueuedEvents = 64;  // then the engine's own bounded streams fill and stall their sequences

constexpr const char* kReading = "reading a choice's tokens";

ChoiceEvent failure_of(std::uint32_t choice) {
  Finish finish;
  finish.reason = FinishReason::kError;
  finish.error = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  return {choice, std::move(finish)};
}

}  // namespace

// For those who wait until something is taken, a timer that never expires serves as a condition: cancelling it wakes them.
struct ChoiceStreams::Merge {
  Merge(const asio::any_io_executor& executor, std::size_t choices)
      : sources(choices, nullptr), dropped(choices, false), cached_tokens(choices, 0), drafts(choices), queue_ms(choices, 0.0),
        taken(executor, std::chrono::steady_clock::time_point::max()) {}

  std::optional<ChoiceEvent> take() {
    if (failed) return failure_of(*failed);
    while (!queue.empty()) {
      ChoiceEvent event = std::move(queue.front());
      queue.pop_front();
      taken.cancel();
      if (!dropped[event.choice]) return event;
    }
    return std::nullopt;
  }

  void drop(std::uint32_t choice) {
    dropped[choice] = true;
    if (sources[choice] != nullptr) sources[choice]->wake();
    taken.cancel();
  }

  // The pump's ticket ends with it.
  void leave(std::uint32_t choice) {
    cached_tokens[choice] = sources[choice]->cached_tokens();
    drafts[choice] = sources[choice]->drafts();
    queue_ms[choice] = sources[choice]->queue_ms();
    sources[choice] = nullptr;
  }

  std::vector<TokenSource*> sources;  // null when its pump has ended
  std::vector<bool> dropped;
  std::vector<std::int32_t> cached_tokens;  // of those whose pump has ended, as the next two
  std::vector<TokenSource::Drafts> drafts;
  std::vector<double> queue_ms;  // likewise
  std::deque<ChoiceEvent> queue;
  std::optional<std::uint32_t> failed;  // a choice that could not be read to its end
  Signal arrived;
  asio::steady_timer taken;
};

ChoiceStreams::ChoiceStreams(asio::any_io_executor executor, std::vector<Ticket> tickets) {
  if (tickets.size() == 1) {
    single_ = std::move(tickets.front());
    return;
  }
  merge_ = std::make_shared<Merge>(executor, tickets.size());
  try {
    for (std::uint32_t i = 0; i < tickets.size(); ++i)
      asio::co_spawn(executor, pump(merge_, i, std::move(tickets[i])), log_failure(kReading));
  } catch (...) {
    drop_all();
    throw;
  }
}

ChoiceStreams::~ChoiceStreams() {
  if (merge_ != nullptr) drop_all();
}

void ChoiceStreams::drop_all() {
  for (std::uint32_t i = 0; i < merge_->sources.size(); ++i) merge_->drop(i);
}

asio::awaitable<void> ChoiceStreams::pump(std::shared_ptr<Merge> merge, std::uint32_t choice, Ticket ticket) {
  merge->sources[choice] = ticket.get();
  try {
    bool ended = false;
    while (!ended && !merge->dropped[choice]) {
      std::optional<TokenEvent> event = co_await ticket->next();
      if (!event) continue;  // woken to look at `dropped`
      ended = std::holds_alternative<Finish>(*event);
      merge->queue.push_back({choice, std::move(*event)});
      merge->arrived.notify();
      while (merge->queue.size() >= kMaxQueuedEvents && !merge->dropped[choice]) {
        error_code cancelled;
        co_await merge->taken.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
      }
    }
  } catch (const std::exception&) {
    merge->failed = choice;
    merge->arrived.notify();
    log_failure(kReading)(std::current_exception());
  }
  merge->leave(choice);
}

std::optional<ChoiceEvent> ChoiceStreams::try_next() {
  if (merge_ != nullptr) return merge_->take();
  if (single_ == nullptr) return std::nullopt;
  std::optional<TokenEvent> event = single_->try_next();
  if (!event) return std::nullopt;
  return ChoiceEvent{0, std::move(*event)};
}

Signal& ChoiceStreams::arrived() { return merge_ != nullptr ? merge_->arrived : single_->arrived(); }

void ChoiceStreams::wake() {
  if (merge_ != nullptr) {
    merge_->arrived.notify();
  } else if (single_ != nullptr) {
    single_->wake();
  }
}

void ChoiceStreams::cancel() {
  if (merge_ != nullptr) {
    for (std::uint32_t i = 0; i < merge_->sources.size(); ++i) {
      if (merge_->sources[i] != nullptr) merge_->sources[i]->cancel();
      merge_->drop(i);
    }
    wake();
  } else if (single_ != nullptr) {
    single_->cancel();
  }
}

double ChoiceStreams::queue_ms(std::uint32_t choice) const {
  const TokenSource* source = merge_ != nullptr ? merge_->sources[choice] : single_.get();
  return source != nullptr ? source->queue_ms() : merge_->queue_ms[choice];
}

std::int32_t ChoiceStreams::cached_tokens(std::uint32_t choice) const {
  const TokenSource* source = merge_ != nullptr ? merge_->sources[choice] : single_.get();
  return source != nullptr ? source->cached_tokens() : merge_->cached_tokens[choice];
}

TokenSource::Drafts ChoiceStreams::drafts(std::uint32_t choice) const {
  const TokenSource* source = merge_ != nullptr ? merge_->sources[choice] : single_.get();
  return source != nullptr ? source->drafts() : merge_->drafts[choice];
}

bool ChoiceStreams::started() const {
  if (merge_ == nullptr) return single_ == nullptr || single_->started();
  const auto has_started = [](const TokenSource* source) { return source == nullptr || source->started(); };
  return std::any_of(merge_->sources.begin(), merge_->sources.end(), has_started);
}

std::int32_t ChoiceStreams::complete(std::uint32_t choice) {
  TokenSource* source = merge_ != nullptr ? merge_->sources[choice] : single_.get();
  const std::int32_t cached = cached_tokens(choice);
  if (source != nullptr) source->complete();
  if (merge_ != nullptr) {
    merge_->drop(choice);
  } else {
    single_.reset();
  }
  return cached;
}

}  // namespace braid::net
