#include "model/sampling/token_history.h"

#include <algorithm>

namespace braid::model {

void TokenHistory::start(const SamplingParams& sampling, std::span<const TokenId> known, std::int32_t generated, std::int32_t more) {
  window_ = sampling.penalty_last_n;
  const std::size_t room = known.size() + static_cast<std::size_t>(std::max(0, more));
  tokens_.clear();
  tokens_.reserve(room);
  tokens_.assign(known.begin(), known.end());
  std::ranges::sort(tokens_);
  counts_.clear();
  counts_.reserve(room);
  for (const TokenId token : tokens_)
    if (counts_.empty() || counts_.back().token != token) counts_.push_back({.token = token});
  std::ranges::copy(known, tokens_.begin());

  const std::size_t window = window_ < 0 ? known.size() : std::min(known.size(), static_cast<std::size_t>(window_));
  for (const TokenId token : known.last(window)) count_of(token).in_window += 1;
  for (const TokenId token : known.last(static_cast<std::size_t>(generated))) count_of(token).in_answer += 1;
}

void TokenHistory::append(TokenId token) {
  tokens_.push_back(token);
  Count& count = count_of(token);
  count.in_window += 1;
  count.in_answer += 1;
  const auto window = static_cast<std::size_t>(window_);
  if (window_ >= 0 && tokens_.size() > window) count_of(tokens_[tokens_.size() - 1 - window]).in_window -= 1;
}

TokenHistory::Count& TokenHistory::count_of(TokenId token) {
  const auto place = std::ranges::lower_bound(counts_, token, {}, &Count::token);
  if (place != counts_.end() && place->token == token) return *place;
  return *counts_.insert(place, {.token = token});
}

}  // namespace braid::model
