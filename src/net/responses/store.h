// Responses kept for previous_response_id and for reading again.
#pragma once

#include "braid/value.h"

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace braid::net::responses {

struct StoredResponse {
  ValueList messages;  // the whole conversation as chat messages, the answer included, the instructions not
  ValueList input;     // the items of its own request, completed; those that it named stand there themselves
  std::string body;    // the response object, JSON
  bool cancelled = false;
};

// Each response has an owner (access::Account::name) and is unknown to everybody else. Bounded by number and by bytes: where one of them
// is exceeded, whoever has the most of it loses the response that he used longest ago. So nobody's can be pushed out by others while he
// has less than his equal share. Any thread: one short lock per request, none per token.
class ResponseStore {
 public:
  static constexpr std::size_t kMaxResponses = 4096;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;

  explicit ResponseStore(std::size_t max_responses = kMaxResponses, std::size_t max_bytes = kMaxBytes)
      : max_responses_(max_responses), max_bytes_(max_bytes) {}

  // What is larger than all the room is not kept.
  void keep(std::string_view owner, std::string_view id, StoredResponse response);

  // Null when unknown or no longer kept.
  std::shared_ptr<const StoredResponse> find(std::string_view owner, std::string_view id);

  // What it takes of the store; 0 when unknown or no longer kept. It does not count as use.
  std::size_t bytes(std::string_view owner, std::string_view id);

  // False when unknown.
  bool erase(std::string_view owner, std::string_view id);

 private:
  struct Owner;
  using Owners = std::map<std::string, Owner, std::less<>>;
  struct Entry {
    Owners::iterator owner;
    std::string id;
    std::size_t bytes;
    std::shared_ptr<const StoredResponse> response;
  };
  using Entries = std::list<Entry>;
  struct Owner {
    Entries entries;  // the one used last in front
    std::size_t bytes = 0;
  };

  Entry* lookup(std::string_view owner, std::string_view id);  // null: none
  void remove(const Entry& entry);
  void make_room();

  const std::size_t max_responses_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  Owners owners_;                                                  // who has any
  std::unordered_map<std::string_view, Entries::iterator> by_id_;  // keys are views of the entries' ids
  std::size_t bytes_ = 0;
};

// One owner's part of a store that outlives it. Any thread.
class Shelf {
 public:
  Shelf(ResponseStore& store, std::string_view owner) : store_(&store), owner_(owner) {}

  void keep(std::string_view id, StoredResponse response) const { store_->keep(owner_, id, std::move(response)); }
  std::shared_ptr<const StoredResponse> find(std::string_view id) const { return store_->find(owner_, id); }
  std::size_t bytes(std::string_view id) const { return store_->bytes(owner_, id); }
  bool erase(std::string_view id) const { return store_->erase(owner_, id); }
  const std::string& owner() const { return owner_; }

 private:
  ResponseStore* store_;
  std::string owner_;
};

}  // namespace braid::net::responses
