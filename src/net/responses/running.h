// The responses that are being generated, by id.
#pragma once

#include "net/responses/store.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace braid::net::responses {

class RunningResponse {
 public:
  virtual ~RunningResponse() = default;
  virtual const Shelf& shelf() const = 0;           // of its owner
  virtual bool is_to_be_kept() const = 0;           // there, when it ends
  virtual StoredResponse as_cancelled() const = 0;  // what it has come to
};

// Does not own them: each is here while it lives. Loop only.
class RunningResponses {
 public:
  void add(const std::string& id, const RunningResponse& response) { by_id_.emplace(id, &response); }
  void remove(const std::string& id) { by_id_.erase(id); }

  // Null when none of that client's has this id.
  const RunningResponse* find(const Shelf& client, const std::string& id) const {
    const auto found = by_id_.find(id);
    return found != by_id_.end() && found->second->shelf().owner() == client.owner() ? found->second : nullptr;
  }

 private:
  std::unordered_map<std::string, const RunningResponse*> by_id_;
};

}  // namespace braid::net::responses
