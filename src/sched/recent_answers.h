// What each client was answered lately, to guess from when it asks for something alike. Loop only.
#pragma once

#include "braid/generation_request.h"
#include "step/answer_automaton.h"

#include <cstddef>
#include <list>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace braid::sched {

// Clients, and requests of one that have different salts, learn nothing of each other. The answers are given out as snapshots that never
// change.
class RecentAnswers {
 public:
  static constexpr std::size_t kMostAnswers = 8;   // of a client
  static constexpr std::size_t kMostTokens = 512;  // of an answer, its first ones
  static constexpr std::size_t kMostClients = 64;  // the one that was not answered for longest is forgotten

  // Null: there are none.
  step::RecentAnswers of(const std::string& client, const std::string& salt) const;
  void add(const std::string& client, const std::string& salt, std::span<const TokenId> answer);

 private:
  using Key = std::pair<std::string, std::string>;
  struct Kept {
    step::RecentAnswers answers;
    std::list<Key>::iterator order;
  };

  std::map<Key, Kept> kept_;
  std::list<Key> order_;  // answered last first
};

}  // namespace braid::sched
