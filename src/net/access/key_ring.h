// Who a request comes from: API keys, and the accounts behind them.
#pragma once

#include "net/access/account.h"
#include "net/access/rules.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::access {

// Loop only. Without keys everybody is one anonymous client; once it has had keys, nobody is let in without one.
class KeyRing {
 public:
  KeyRing(std::vector<ApiKey> keys, Rules anonymous, Clock::time_point now);

  // In place of those of before. What a name has used stays used, also while it has no key, and requests run on, also those of keys that
  // are gone.
  void replace(std::vector<ApiKey> keys, Clock::time_point now);
  // Of who has no key, where none is wanted.
  void limit_anonymous(const Limits& limits, Clock::time_point now);

  // Whether nobody is let in without one.
  bool required() const { return required_; }

  // Whose request it is that came with `keys`, of which one must be right; kUnauthorized else.
  Result<std::shared_ptr<Account>> identify(std::span<const std::string> keys) const;

 private:
  struct Entry {
    Digest digest;
    std::shared_ptr<Account> account;
  };

  // Null when it is none of these. The time it takes depends on the key's length and on how many there are, on nothing else.
  std::shared_ptr<Account> find(std::string_view key) const;

  std::vector<Entry> entries_;
  std::map<std::string, std::shared_ptr<Account>> accounts_;  // by name; also of keys that are gone, while they have used something
  std::shared_ptr<Account> anonymous_;
  bool required_ = false;
};

}  // namespace braid::net::access
