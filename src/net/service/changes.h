// What administrators have changed of adapters and weights, so that all servers of a set (--peers) come to have the same.
#pragma once

#include "braid/served_model.h"

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Changes of one subject in the order of `number`, and of who made them where that is equal.
struct ChangeKey {
  // What a change leaves of earlier ones of its subject: nothing; what made it; everything.
  enum class Kind : std::uint8_t { kAll, kUpdate, kPart };

  std::uint64_t number = 0;  // milliseconds of Unix time, and more than all that were known when it was made
  std::string node;          // that it was made on
  std::string model;
  std::string adapter;   // of it; empty: its own weights
  std::string revision;  // what comes of it; empty: the adapter is gone
  Kind kind = Kind::kAll;

  bool is_about(const ChangeKey& other) const { return model == other.model && adapter == other.adapter; }
  bool is_same(const ChangeKey& other) const { return number == other.number && node == other.node; }
  bool is_before(const ChangeKey& other) const { return number != other.number ? number < other.number : node < other.node; }
  // Nobody needs it any more who has `later`.
  bool is_undone_by(const ChangeKey& later) const {
    return is_about(later) && is_before(later) && later.kind != Kind::kPart && later.kind <= kind;
  }
  std::string subject() const;  // "the adapter 'tuned' of 'base'", "the weights of 'base'"
};

// With the request that made it.
struct Change : ChangeKey {
  enum class Route : std::uint8_t { kUpdateWeights, kLoadAdapter, kLoadLora, kUpdateAdapter, kUnloadAdapter };

  Route route = Route::kUpdateWeights;
  std::string body;
};

// As another server tells of one.
struct KnownChange {
  ChangeKey key;
  bool in_effect = true;
};

// Another server, as it was found last.
struct PeerState {
  std::string address;
  std::string node = {};                  // empty: it has not answered
  std::string fault = {};                 // why it has not all that this one has; empty: it has
  std::vector<KnownChange> changes = {};  // that it has
};

// What did not succeed is not tried again at once.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  bool holds(Clock::time_point now = Clock::now()) const { return now < until_; }
  void fails(Clock::time_point now = Clock::now()) {
    until_ = now + next_;
    next_ = std::min(2 * next_, kLongest);
  }

 private:
  static constexpr std::chrono::seconds kLongest{60};
  Clock::time_point until_{};
  std::chrono::seconds next_{2};
};

// Those that are still needed, and what this server is known to lack. Loop only.
class Changes {
 public:
  Changes();

  // Of this process, so that a server finds itself among the others.
  const std::string& node() const { return node_; }
  void on_change(std::function<void()> tell) { tell_ = std::move(tell); }  // called when one was made here

  // One that was made here; its number and node are set.
  void note(Change change);
  // One that was made elsewhere and has been repeated here.
  void add(Change change);
  bool has(const ChangeKey& key) const;
  bool is_undone(const ChangeKey& key) const;
  // It could not be repeated here.
  void fail(const ChangeKey& key, std::string why);
  // It could, after all.
  void succeed(const ChangeKey& key);

  // The repeating of changes that were lost here: one at a time.
  struct CatchingUp {
    bool is_running = false;
    Patience patience;
  };
  CatchingUp& catching_up() { return catching_up_; }

  // What was found in a round among all others.
  void set_peers(std::vector<PeerState> peers);
  const std::vector<PeerState>& peers() const { return peers_; }

  // In their order; what they hold never changes.
  std::vector<std::shared_ptr<const Change>> all() const { return changes_; }
  // Whether the subject has the revision that its changes come to, or its model is not loaded: one that was loaded anew has not.
  bool in_effect(const Change& change, const ServiceStatus& status) const;
  static bool is_loaded(const ChangeKey& key, const ServiceStatus& status);  // its model
  // Why this server has not what the others have, as a sentence; empty: it has.
  std::string lack(const ServiceStatus& status) const;

 private:
  struct Missing {
    ChangeKey key;
    std::string why;
  };
  void insert(Change change);
  const Change& last_about(const ChangeKey& key) const;

  std::string node_;
  std::uint64_t highest_ = 0;  // number
  bool has_asked_ = false;
  std::function<void()> tell_;
  std::vector<std::shared_ptr<const Change>> changes_;
  std::vector<Missing> missing_;
  std::vector<PeerState> peers_;
  CatchingUp catching_up_;
};

}  // namespace braid::net
