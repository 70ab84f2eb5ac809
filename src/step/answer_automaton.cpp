#include "step/answer_automaton.h"

#include <algorithm>
#include <map>
#include <utility>

namespace braid::step {

// Token by token, while edges still change.
class AnswerAutomaton::Builder {
 public:
  explicit Builder(std::vector<State>& states) : states_(states) { states_.resize(1); }

  std::uint32_t append(std::uint32_t last, TokenId token, std::uint32_t place) {
    const auto added = static_cast<std::uint32_t>(states_.size());
    states_.push_back({.longest = states_[last].longest + 1, .link = 0, .end = place + 1});
    std::uint32_t from = last;
    for (; from != kNone && next(from, token) == kNone; from = states_[from].link) edges_[{from, token}] = added;
    if (from == kNone) return added;
    const std::uint32_t state = next(from, token);
    const std::uint32_t link = states_[state].longest == states_[from].longest + 1 ? state : split(from, token, state);
    states_[added].link = link;
    return added;
  }

  std::vector<Edge> edges() const {
    std::vector<Edge> edges;
    edges.reserve(edges_.size());
    for (const auto& [edge, to] : edges_) edges.push_back({edge.first, edge.second, to});
    return edges;
  }

 private:
  std::uint32_t next(std::uint32_t state, TokenId token) const {
    const auto found = edges_.find({state, token});
    return found != edges_.end() ? found->second : kNone;
  }

  // What leads from `from` by `token` to `state` is shorter than the longest that does: it gets a state of its own, with the same ways on.
  std::uint32_t split(std::uint32_t from, TokenId token, std::uint32_t state) {
    const auto copy = static_cast<std::uint32_t>(states_.size());
    states_.push_back({.longest = states_[from].longest + 1, .link = states_[state].link, .end = states_[state].end});
    for (auto way = edges_.lower_bound({state, 0}); way != edges_.end() && way->first.first == state; ++way)
      edges_[{copy, way->first.second}] = way->second;
    states_[state].link = copy;
    for (; from != kNone && next(from, token) == state; from = states_[from].link) edges_[{from, token}] = copy;
    return copy;
  }

  std::vector<State>& states_;
  std::map<std::pair<std::uint32_t, TokenId>, std::uint32_t> edges_;
};

AnswerAutomaton::AnswerAutomaton(std::vector<TokenId> answer) : answer_(std::move(answer)) {
  Builder builder(states_);
  std::uint32_t last = 0;
  for (std::uint32_t place = 0; place < answer_.size(); ++place) last = builder.append(last, answer_[place], place);
  states_.shrink_to_fit();
  edges_ = builder.edges();
}

std::uint32_t AnswerAutomaton::next(std::uint32_t state, TokenId token) const {
  const auto place = [](const Edge& edge) { return std::pair(edge.from, edge.token); };
  const auto found = std::ranges::lower_bound(edges_, std::pair(state, token), {}, place);
  return found != edges_.end() && place(*found) == std::pair(state, token) ? found->to : kNone;
}

AnswerAutomaton::Place AnswerAutomaton::advance(Place place, TokenId token) const {
  for (;;) {
    if (const std::uint32_t to = next(place.state, token); to != kNone) return {to, place.length + 1};
    if (states_[place.state].link == kNone) return {};
    place.state = states_[place.state].link;
    place.length = states_[place.state].longest;
  }
}

}  // namespace braid::step
