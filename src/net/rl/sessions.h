// Hidden states of policies that stay on the server between two steps of an episode.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::rl {

// Loop only. Each session has an owner (access::Account::name) and is unknown to everybody else. One that has not been used for its time to
// live is forgotten: who goes on with its name begins a new one, at step 0.
class Sessions {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::size_t kMaxSessions = 65'536;
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;  // of states

  explicit Sessions(std::size_t max_sessions = kMaxSessions, std::size_t max_bytes = kMaxBytes)
      : max_sessions_(max_sessions), max_bytes_(max_bytes) {}

  struct Episode {
    std::vector<Tensor> states;  // of the policy, in its order; empty before the first step
    std::uint64_t seed = 0;
    std::int64_t step = 0;  // the next one
  };

  // The right to take the next step of a session, which outlives it: nobody else may meanwhile. What was not kept() leaves the session as it
  // was.
  class Turn {
   public:
    ~Turn();
    Turn(Turn&& other) noexcept : sessions_(std::exchange(other.sessions_, nullptr)), key_(std::move(other.key_)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Turn& operator=(Turn&&) = delete;

    const Episode& episode() const;
    // kOverloaded: there is no room for such states; the session stays as it was.
    Result<void> keep(Episode episode, std::chrono::seconds time_to_live, Clock::time_point now);
    void end();  // the session is over

   private:
    friend Sessions;
    using Key = std::pair<std::string, std::string>;  // owner and name
    Turn(Sessions& sessions, Key key) : sessions_(&sessions), key_(std::move(key)) {}

    Sessions* sessions_;  // null: moved from
    Key key_;
  };

  // `policy`: whose session it is; one of another policy's is none of it. kInvalidArgument ("session"): somebody takes its step just now;
  // kOverloaded: there are too many.
  Result<Turn> begin(std::string_view owner, std::string_view name, std::string_view policy, Clock::time_point now);

  std::size_t size() const { return entries_.size(); }

 private:
  using Key = Turn::Key;
  struct Entry {
    Episode episode;
    std::string policy;
    std::size_t bytes = 0;
    Clock::time_point until = {};  // then it is forgotten, unless it is in use
    bool in_use = false;
  };
  using Entries = std::map<Key, Entry>;

  void forget_old(Clock::time_point now);
  void erase(Entries::iterator entry);
  void release(const Key& key);

  const std::size_t max_sessions_;
  const std::size_t max_bytes_;
  Entries entries_;
  std::set<std::pair<Clock::time_point, Key>> ends_;  // of those that nobody uses just now
  std::size_t bytes_ = 0;
};

}  // namespace braid::net::rl
