#include <net/generation/best_of.h>

#include <algorithm>
#include <utility>

namespace braid::net {

void keep_best(std::vector<ChoiceAnswer>& answers, std::size_t candidates, std::size_t choices) {
  if (candidates <= choices) return;
  std::vector<ChoiceAnswer> best;
  for (auto group = answers.begin(); group != answers.end(); group += static_cast<std::ptrdiff_t>(candidates)) {
    std::stable_sort(group, group + static_cast<std::ptrdiff_t>(candidates),
                     [](const ChoiceAnswer& a, const ChoiceAnswer& b) { return a.mean_logprob > b.mean_logprob; });
    std::move(group, group + static_cast<std::ptrdiff_t>(choices), std::back_inserter(best));
  }
  answers = std::move(best);
}

}  // namespace braid::net
