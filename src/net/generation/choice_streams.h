// The running choices of one request as one stream of events.
#pragma once

#include "braid/engine.h"
#include "braid/signal.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace braid::net {

struct ChoiceEvent {
  std::uint32_t choice = 0;
  TokenEvent event;
};

// Loop only. One ticket, the usual case, is read directly; several are read by one coroutine each, which own them. Destroying this
// cancels what still runs.
class ChoiceStreams {
 public:
  ChoiceStreams(boost::asio::any_io_executor executor, std::vector<Ticket> tickets);
  ~ChoiceStreams();
  ChoiceStreams(const ChoiceStreams&) = delete;
  ChoiceStreams& operator=(const ChoiceStreams&) = delete;

  // What has arrived of any choice, and the signal of its arrival, as TokenSource has them. Not to be waited for when no choice is left.
  std::optional<ChoiceEvent> try_next();
  Signal& arrived();
  void wake();  // ends a pending wait
  // Cancels every choice at once, and wakes.
  void cancel();

  // As TokenSource says of this choice.
  double queue_ms(std::uint32_t choice) const;
  std::int32_t cached_tokens(std::uint32_t choice) const;
  TokenSource::Drafts drafts(std::uint32_t choice) const;
  bool started() const;  // whether any choice has left the queue

  // Ends a choice whose answer is complete before the engine knows (a stop string); it has no more events. Returns its cached
  // tokens.
  std::int32_t complete(std::uint32_t choice);

 private:
  struct Merge;

  void drop_all();
  static boost::asio::awaitable<void> pump(std::shared_ptr<Merge> merge, std::uint32_t choice, Ticket ticket);

  Ticket single_;
  std::shared_ptr<Merge> merge_;  // null when there is one choice
};

}  // namespace braid::net
