// What a store that others write to has said about keys, lately.
#pragma once

#include "cache/prefix_index.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <unordered_map>

namespace braid::store {

// Loop only. A record that is there may be gone the next moment, which costs a miss, and one that is missing may be written: so neither is
// believed for ever.
class KnownKeys {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPresent{10};
  static constexpr std::chrono::seconds kMissing{2};
  static constexpr std::size_t kMost = std::size_t{1} << 17U;  // some megabytes

  void put(const cache::PrefixKey& key, bool is_present, Clock::time_point now) {
    if (keys_.size() >= kMost) std::erase_if(keys_, [now](const auto& entry) { return entry.second.until <= now; });
    if (keys_.size() >= kMost) keys_.clear();
    keys_.insert_or_assign(key, Known{is_present, now + (is_present ? Clock::duration(kPresent) : Clock::duration(kMissing))});
  }

  // nullopt: nobody has said anything.
  std::optional<bool> find(const cache::PrefixKey& key, Clock::time_point now) const {
    const auto found = keys_.find(key);
    if (found == keys_.end() || found->second.until <= now) return std::nullopt;
    return found->second.is_present;
  }

  std::size_t size() const { return keys_.size(); }

 private:
  struct Known {
    bool is_present = false;
    Clock::time_point until;
  };
  struct Hash {
    std::size_t operator()(const cache::PrefixKey& key) const { return key.low; }
  };
  std::unordered_map<cache::PrefixKey, Known, Hash> keys_;
};

}  // namespace braid::store
