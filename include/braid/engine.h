// The one way into generation. Everything here belongs to the loop's thread.
#pragma once

#include "braid/engine_stats.h"
#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/signal.h"
#include "braid/token_event.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

// The consumer's side of one running request. Destroying it cancels the request in every phase.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // What has arrived, or nullopt. After a Finish it must not be called again.
  virtual std::optional<TokenEvent> try_next() = 0;

  // Notified when something has arrived, and by wake(), cancel() and complete(). It has one waiter.
  virtual Signal& arrived() = 0;

  // Ends a pending wait for events, so that one coroutine does all writing: a session's timer and disconnect watcher use it. Without
  // a wait it does nothing; who waits looks first at whatever he may be woken for.
  void wake() { arrived().notify(); }

  // The next event, waiting for it if need be; nullopt when the wait has ended without one.
  boost::asio::awaitable<std::optional<TokenEvent>> next() {
    if (std::optional<TokenEvent> event = try_next()) co_return event;
    co_await arrived().wait();
    co_return try_next();
  }

  // What destroying it does, at once and also while an event is waited for. No event follows, not even one that has arrived.
  virtual void cancel() = 0;

  // As cancel(), because the consumer has its whole answer (a stop string): it counts as finished, not as cancelled.
  virtual void complete() = 0;

  // Prompt tokens that were found in the prefix cache: what Usage says in the end. 0 until the request starts.
  virtual std::int32_t cached_tokens() const = 0;

  // Tokens of its answer that were guessed, and right or wrong: what Usage says in the end.
  struct Drafts {
    std::int32_t accepted = 0;
    std::int32_t rejected = 0;
  };
  virtual Drafts drafts() const { return {}; }

  // Milliseconds from submission to a place in the batch; 0 until then.
  virtual double queue_ms() const { return 0.0; }

  // Whether the request has left the queue; it stays true when it comes back there.
  virtual bool started() const = 0;
};

// Move-only owner of a TokenSource.
using Ticket = std::unique_ptr<TokenSource>;

// One sequence that waits or runs, for /slots.
struct SequenceSnapshot {
  std::string id;
  std::string phase;  // waiting, restoring, prefill, decode, stalled, parked, retrying, preempted
  std::int32_t priority = 0;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t generated_tokens = 0;
  std::int32_t max_tokens = 0;
  std::uint32_t queue_position = 0;  // 1: the next to be admitted; 0: it does not wait
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Admits the request or refuses at once: kOverloaded when the waiting queue is full, with Error::retry_after and queue_position,
  // kContextLength or kInvalidArgument when it can never run, kDraining during shutdown.
  virtual Result<Ticket> submit(GenerationRequest request) = 0;

  // kOverloaded, as submit() says it, when the queue has no room for so many `requests` of this `priority` at once; kInvalidArgument when it
  // never has.
  virtual Result<void> check_queue(std::size_t /*requests*/, std::int32_t /*priority*/) { return {}; }

  // For work that needs requests one after the other, before the first one: while what is returned lives, those that bring it along
  // (GenerationRequest::reservation) are refused neither by a full queue nor because the server is shutting down, which waits for them. Null:
  // they are treated like all others.
  virtual std::shared_ptr<const void> reserve() { return nullptr; }

  virtual EngineStats stats() const = 0;

  // Ends the request with this GenerationRequest::id by Finish{kCancelled}. False when there is none.
  virtual bool cancel(std::string_view id) = 0;

  // The prefix cache forgets what no sequence holds; records on disk stay. Returns how many blocks that were.
  virtual std::int32_t forget_prefixes() { return 0; }

  // Running ones first, each kind oldest first, at most `limit`.
  virtual std::vector<SequenceSnapshot> sequences(std::size_t limit) const = 0;
};

}  // namespace braid
