#include "sched/token_stream.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>
#include <variant>

namespace braid::sched {

namespace {
constexpr std::uint32_t kFirstRing = 4;
}

void TokenStream::push_prompt(std::vector<PromptToken> tokens) {
  assert(count_ == 0 && !end_);
  if (!prompt_) prompt_ = std::make_unique<PromptTokens>();
  std::ranges::move(tokens, std::back_inserter(prompt_->tokens));
}

void TokenStream::push_vector(std::vector<float> values) {
  assert(!end_);
  end_ = std::make_unique<End>();
  end_->vector.emplace(PooledVector{std::move(values)});
}

void TokenStream::grow() {
  const std::uint32_t size = std::max(kFirstRing, ring_size_ * 2);
  auto ring = std::make_unique<Token[]>(size);
  for (std::uint32_t i = 0; i < count_; ++i) ring[i] = std::move(ring_[(head_ + i) & (ring_size_ - 1)]);
  grown_ = std::move(ring);
  ring_ = grown_.get();
  ring_size_ = size;
  head_ = 0;
}

void TokenStream::finish(Finish finish) {
  if (!end_) end_ = std::make_unique<End>();
  assert(!end_->finish);
  end_->finish = std::move(finish);
}

std::optional<TokenEvent> TokenStream::try_other() {
  if (prompt_) {
    const auto prompt = std::exchange(prompt_, nullptr);
    return TokenEvent(std::move(*prompt));
  }
  if (!end_) return std::nullopt;
  if (end_->vector) {
    TokenEvent vector(std::move(*end_->vector));
    end_->vector.reset();
    return vector;
  }
  if (!end_->finish) return std::nullopt;
  const auto end = std::exchange(end_, nullptr);
  return TokenEvent(std::move(*end->finish));
}

void TokenStream::close() {
  prompt_.reset();
  count_ = 0;
  end_.reset();
  arrived_.notify();
}

}  // namespace braid::sched
