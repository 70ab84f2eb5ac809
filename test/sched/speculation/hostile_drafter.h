// A drafter that knows the answers and tells them as it likes: right, wrong, half right, too many, none at all, no tokens of the vocabulary,
// or it throws.
#pragma once

#include "model/drafting/drafter.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace braid::sched::test {

using AnswerKey = std::pair<std::uint64_t, std::uint32_t>;  // a request's seed and choice
inline AnswerKey key_of(const SamplingParams& sampling) { return {sampling.seed, sampling.choice}; }

class HostileDrafter final : public model::Drafter {
 public:
  explicit HostileDrafter(std::map<AnswerKey, std::vector<TokenId>> wholes) : wholes_(std::move(wholes)) {}

  void start(const step::SlotStart& start) override { keys_[start.slot] = key_of(start.sampling); }

  void draft(std::span<model::DraftWish> wishes) override {
    if (may_throw_ && pick(40) == 0) throw std::runtime_error("the drafter is out of its mind");
    if (++calls_ > most_calls_) throw std::runtime_error("the drafter is gone");
    for (model::DraftWish& wish : wishes) draft(wish);
  }

  void throw_now_and_then() { may_throw_ = true; }
  // After so many steps it does nothing but throw.
  void disappear_after(std::size_t calls) { most_calls_ = calls; }
  std::size_t calls() const { return calls_; }

 private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_()) % below; }

  void draft(model::DraftWish& wish) {
    const std::vector<TokenId>& whole = wholes_.at(keys_.at(wish.slot));
    const std::uint32_t mood = pick(8);
    if (mood == 0) return;
    const std::size_t right = mood == 1 ? 0 : mood == 2 ? pick(static_cast<std::uint32_t>(wish.guesses.size())) : wish.guesses.size();
    for (std::size_t i = 0; i < wish.guesses.size(); ++i) {
      const std::size_t at = wish.text.size() + i;
      const TokenId token = at < whole.size() ? whole[at] : static_cast<TokenId>(5 + pick(100));
      wish.guesses[i] = i < right ? token : token + 1;
    }
    if (mood == 3) wish.guesses.back() = -7;
    if (mood == 4) wish.guesses.front() = 1'000'000;
    wish.count = mood == 5 ? wish.guesses.size() + 9 : mood == 6 ? wish.guesses.size() / 2 : wish.guesses.size();
  }

  std::map<AnswerKey, std::vector<TokenId>> wholes_;  // prompt and answer
  std::map<step::SlotId, AnswerKey> keys_;
  std::mt19937 random_{11};
  bool may_throw_ = false;
  std::size_t calls_ = 0;
  std::size_t most_calls_ = ~std::size_t{0};
};

}  // namespace braid::sched::test
