// An engine without a model: a test says which events each request gets, at once or one by one.
#pragma once

#include "braid/engine.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::test {

class FakeSource;

// Loop only, like every engine.
class FakeEngine final : public Engine {
 public:
  Result<Ticket> submit(GenerationRequest request) override;
  Result<void> check_queue(std::size_t requests, std::int32_t priority) override;
  std::shared_ptr<const void> reserve() override { return reserved; }
  EngineStats stats() const override;
  std::int32_t forget_prefixes() override { return std::exchange(cached_blocks, 0); }
  bool cancel(std::string_view id) override;  // of a request that lives: it gets Finish{kCancelled}
  std::vector<SequenceSnapshot> sequences(std::size_t limit) const override;

  // What a new request gets at once; by default "Hi" and an end. Set it to nothing to drive requests by push().
  std::function<std::vector<TokenEvent>(const GenerationRequest&)> script;
  std::optional<Error> refusal;  // instead of a ticket
  std::size_t room = SIZE_MAX;   // of the queue: who asks for more is refused

  std::size_t backlog(std::size_t index) const;    // events that the index-th request has not taken; it lives
  void push(std::size_t index, TokenEvent event);  // to the index-th request ever submitted, if it lives

  const std::shared_ptr<const void> reserved = std::make_shared<char>();
  std::vector<GenerationRequest> submitted;
  std::map<std::size_t, FakeSource*> live;
  std::size_t cancelled = 0;       // tickets destroyed before their Finish was taken
  std::size_t completed = 0;       // tickets told that the answer is complete
  std::int32_t cached_tokens = 0;  // what every ticket says
  double queue_ms = 0.0;           // likewise
  bool started = true;             // likewise
  std::int32_t cached_blocks = 0;
  std::uint32_t most_running = 0;
};
// The events of `text`, one token a byte, then a Finish.
std::vector<TokenEvent> events_of(std::string_view text, FinishReason reason = FinishReason::kStop, std::int32_t prompt_tokens = 0);

// "Hi", and of what is asked about it scores and vectors, which tell the places of tokens: -1, -2 … and (1, 10), (2, 20) …
std::vector<TokenEvent> answer_or_review(const GenerationRequest& request);

}  // namespace braid::test
