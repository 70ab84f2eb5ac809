// One client of the server, known by its API key or anonymous: what it has used of what it may use.
#pragma once

#include "braid/result.h"
#include "net/access/rules.h"
#include "net/access/token_bucket.h"
#include "net/http/response.h"

#include <cstddef>
#include <memory>
#include <string>

namespace braid::net::access {

// Loop only. Shared by the key ring and the requests that run; outlives its key.
class Account {
 public:
  Account(std::string name, Rules rules, Clock::time_point now);

  const std::string& name() const { return name_; }  // empty: anonymous
  const Rules& rules() const { return rules_; }
  std::uint32_t running() const { return running_; }

  bool is_unused(Clock::time_point now);  // as if it were new: nothing runs, and all that may be used in a minute is there

  void set_rules(Rules rules, Clock::time_point now);

  // x-ratelimit-limit-requests and its like, as OpenAI has them; nothing about what is not limited.
  void append_headers(http::Headers& headers, Clock::time_point now) const;

 private:
  friend class Visit;

  std::string name_;
  Rules rules_;
  TokenBucket requests_;
  TokenBucket tokens_;
  std::uint32_t running_ = 0;
};

// One accepted request: counts among its client's running ones while it lives. Loop only.
class Visit {
 public:
  // kRateLimited with Error::retry_after when the client has used up its requests, or runs too many.
  static Result<Visit> begin(std::shared_ptr<Account> account, Clock::time_point now);

  Visit(Visit&&) noexcept = default;
  Visit(const Visit&) = delete;
  ~Visit();

  // kRateLimited when the client has used up its tokens; kInvalidArgument when the prompt is more than a minute's worth.
  Result<void> take_prompt(std::size_t tokens, Clock::time_point now);
  void give_back(std::size_t tokens) { account_->tokens_.take(-static_cast<double>(tokens)); }
  void take_generated(std::size_t tokens) { account_->tokens_.take(static_cast<double>(tokens)); }

  const Account& account() const { return *account_; }

 private:
  explicit Visit(std::shared_ptr<Account> account) : account_(std::move(account)) { ++account_->running_; }

  std::shared_ptr<Account> account_;  // null when moved from
};

}  // namespace braid::net::access
