// The way of one sequence's events from the scheduler to its consumer.
#pragma once

#include "braid/prefetch.h"
#include "braid/signal.h"
#include "braid/token_event.h"
#include "sched/wake_list.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace braid::sched {

// A bounded queue with one consumer. Loop only. Holds at most `capacity` tokens and always has room for the Finish besides.
// Memory follows the backlog: an idle or well-read stream has nothing but itself.
class TokenStream {
 public:
  explicit TokenStream(std::int32_t capacity) : capacity_(static_cast<std::uint32_t>(capacity)) {}

  // Producer. push() and finish() do not wake the consumer: deliver() does, once the next step is on its way.
  [[gnu::always_inline]] void push(Token&& token) {
    assert(count_ < capacity_ && !end_);
    if (count_ == ring_size_) grow();
    Token& place = ring_[(head_ + count_) & (ring_size_ - 1)];
    assert(place.details == nullptr);
    std::construct_at(&place, std::move(token));
    ++count_;
  }
  void prefetch_place() const noexcept { prefetch_lines(ring_ + ((head_ + count_) & (ring_size_ - 1)), sizeof(Token)); }
  // Come before all tokens, and do not count: a prompt bounds them. A backlog of them is one event.
  void push_prompt(std::vector<PromptToken> tokens);
  // Instead of tokens.
  void push_vector(std::vector<float> values);
  void finish(Finish finish);
  void deliver(WakeList& wakes) { wakes.add(arrived_); }
  std::int32_t size() const { return static_cast<std::int32_t>(count_); }
  std::int32_t capacity() const { return static_cast<std::int32_t>(capacity_); }

  // Consumer. As in TokenSource. A token's way is in this header: it is gone for each one, and where it is inlined nobody asks again
  // which kind of event it is.
  std::optional<TokenEvent> try_next() {
    if (count_ == 0 || prompt_) return try_other();
    std::optional<TokenEvent> event(std::in_place, std::in_place_type<Token>, std::move(ring_[head_]));
    head_ = (head_ + 1) & (ring_size_ - 1);
    --count_;
    return event;
  }
  Signal& arrived() { return arrived_; }
  // Drops what has arrived and ends a wait; nothing is pushed any more.
  void close();

 private:
  std::optional<TokenEvent> try_other();  // than a token
  void grow();

  std::array<Token, 2> own_;  // where the consumer keeps up there are no more than two steps bring: these lie with the rest
  // [ring_size_], a power of two: own_, or grown_. A place without a token has one that was moved from and owns nothing: push() begins a new
  // one there without looking at it, for it may have to come from memory.
  Token* ring_ = own_.data();
  std::uint32_t ring_size_ = 2;
  std::uint32_t head_ = 0;  // index of the oldest token
  std::uint32_t count_ = 0;
  std::uint32_t capacity_;
  std::unique_ptr<Token[]> grown_;  // once there were more
  std::unique_ptr<PromptTokens> prompt_;
  // There is one for a moment at the end, so it is kept out of line.
  struct End {
    std::optional<PooledVector> vector;
    std::optional<Finish> finish;
  };
  std::unique_ptr<End> end_;
  Signal arrived_;
};

}  // namespace braid::sched
