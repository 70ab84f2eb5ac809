#include "sched/recent_answers.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace braid::sched {
namespace {

constexpr std::size_t kLeastTokens = 8;  // shorter answers tell nothing

}  // namespace

step::RecentAnswers RecentAnswers::of(const std::string& client, const std::string& salt) const {
  const auto found = kept_.find({client, salt});
  return found != kept_.end() ? found->second.answers : nullptr;
}

void RecentAnswers::add(const std::string& client, const std::string& salt, std::span<const TokenId> answer) {
  if (answer.size() < kLeastTokens) return;
  answer = answer.first(std::min(answer.size(), kMostTokens));
  std::vector<std::shared_ptr<const step::AnswerAutomaton>> answers;
  answers.push_back(std::make_shared<const step::AnswerAutomaton>(std::vector<TokenId>(answer.begin(), answer.end())));
  auto [place, is_new] = kept_.try_emplace({client, salt});
  if (is_new) {
    order_.push_front(place->first);
    place->second.order = order_.begin();
  } else {
    const auto& before = *place->second.answers;
    answers.insert(answers.end(), before.begin(), before.begin() + static_cast<std::ptrdiff_t>(std::min(before.size(), kMostAnswers - 1)));
    order_.splice(order_.begin(), order_, place->second.order);
  }
  place->second.answers = std::make_shared<const std::vector<std::shared_ptr<const step::AnswerAutomaton>>>(std::move(answers));
  if (kept_.size() <= kMostClients) return;
  kept_.erase(order_.back());
  order_.pop_back();
}

}  // namespace braid::sched
