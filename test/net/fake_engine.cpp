#include "net/fake_engine.h"

#include <deque>

namespace braid::test {

class FakeSource final : public TokenSource {
 public:
  FakeSource(FakeEngine& engine, std::size_t index) : engine_(engine), index_(index) { engine_.live[index_] = this; }
  ~FakeSource() override { leave(); }

  void push(TokenEvent event) {
    events_.push_back(std::move(event));
    arrived_.notify();
  }

  std::size_t backlog() const { return events_.size(); }

  std::optional<TokenEvent> try_next() override {
    if (events_.empty()) return std::nullopt;
    TokenEvent event = std::move(events_.front());
    events_.pop_front();
    finished_ = finished_ || std::holds_alternative<Finish>(event);
    return event;
  }

  Signal& arrived() override { return arrived_; }

  void cancel() override {
    leave();
    events_.clear();
    wake();
  }

  void complete() override {
    if (engine_.live.erase(index_) > 0) ++engine_.completed;
    events_.clear();
    wake();
  }

  std::int32_t cached_tokens() const override { return engine_.cached_tokens; }
  double queue_ms() const override { return engine_.queue_ms; }
  bool started() const override { return engine_.started; }

 private:
  void leave() {
    if (engine_.live.erase(index_) > 0 && !finished_) ++engine_.cancelled;
  }

  FakeEngine& engine_;
  std::size_t index_;
  Signal arrived_;
  std::deque<TokenEvent> events_;
  bool finished_ = false;
};

Result<void> FakeEngine::check_queue(std::size_t requests, std::int32_t) {
  if (requests <= room) return {};
  return Error{ErrorCode::kOverloaded, "the queue is full", ""};
}

Result<Ticket> FakeEngine::submit(GenerationRequest request) {
  if (refusal) return *refusal;
  auto source = std::make_unique<FakeSource>(*this, submitted.size());
  if (script)
    for (TokenEvent& event : script(request)) source->push(std::move(event));
  submitted.push_back(std::move(request));
  return Ticket(std::move(source));
}

EngineStats FakeEngine::stats() const {
  EngineStats stats;
  stats.submitted = submitted.size();
  stats.cancelled = cancelled;
  stats.blocks_total = 64;
  stats.most_running = most_running;
  return stats;
}

bool FakeEngine::cancel(std::string_view id) {
  for (const auto& [index, source] : live) {
    if (submitted[index].id != id) continue;
    Finish finish;
    finish.reason = FinishReason::kCancelled;
    source->push(std::move(finish));
    return true;
  }
  return false;
}

std::vector<SequenceSnapshot> FakeEngine::sequences(std::size_t limit) const {
  std::vector<SequenceSnapshot> found;
  for (const auto& [index, source] : live) {
    if (found.size() == limit) break;
    const GenerationRequest& request = submitted[index];
    found.push_back(
        {request.id, "decode", request.priority, static_cast<std::int32_t>(request.prompt.size()), 0, 0, request.stop.max_tokens});
  }
  return found;
}

std::size_t FakeEngine::backlog(std::size_t index) const { return live.at(index)->backlog(); }

void FakeEngine::push(std::size_t index, TokenEvent event) {
  const auto found = live.find(index);
  if (found != live.end()) found->second->push(std::move(event));
}

std::vector<TokenEvent> events_of(std::string_view text, FinishReason reason, std::int32_t prompt_tokens) {
  std::vector<TokenEvent> events;
  for (const char c : text) events.push_back(Token{static_cast<unsigned char>(c), 0.0F, {}});
  Finish finish;
  finish.reason = reason;
  finish.usage = {prompt_tokens, static_cast<std::int32_t>(text.size()), 0};
  events.push_back(std::move(finish));
  return events;
}

std::vector<TokenEvent> answer_or_review(const GenerationRequest& request) {
  Finish finish;
  finish.reason = FinishReason::kLength;
  if (request.pooling != Pooling::kNone) {
    PooledVector all;
    for (std::size_t i = static_cast<std::size_t>(request.pooled_from); i < request.prompt.size(); ++i) {
      all.values.push_back(static_cast<float>(i));
      if (request.pooled_output == PooledOutput::kVector) all.values.push_back(static_cast<float>(10 * i));
    }
    return {std::move(all), finish};
  }
  if (request.prompt_logprobs < 0) return {Token{'H', -0.25F, {}}, Token{'i', -1.5F, {}}, finish};
  PromptTokens prompt;
  for (std::size_t i = 0; i < request.prompt.size(); ++i)
    prompt.tokens.push_back({request.prompt[i], i > 0 ? std::optional(-static_cast<float>(i)) : std::nullopt, {}});
  return {std::move(prompt), finish};
}

}  // namespace braid::test
