#include "net/access/account.h"

#include <chrono>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::net::access {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kForAnother{1};  // to end; how long its own requests run is the client's affair

Error rate_limited(std::string message, milliseconds wait) {
  Error error{ErrorCode::kRateLimited, std::move(message), ""};
  error.retry_after = std::chrono::ceil<std::chrono::seconds>(wait);
  return error;
}

void append_bucket(http::Headers& headers, std::string_view kind, TokenBucket bucket, Clock::time_point now) {
  if (!bucket.limited()) return;
  headers.emplace_back(fmt::format("x-ratelimit-limit-{}", kind), fmt::to_string(bucket.per_minute()));
  headers.emplace_back(fmt::format("x-ratelimit-remaining-{}", kind), fmt::to_string(bucket.remaining(now)));
  headers.emplace_back(fmt::format("x-ratelimit-reset-{}", kind), fmt::format("{}ms", bucket.until_full(now).count()));
}

}  // namespace

Account::Account(std::string name, Rules rules, Clock::time_point now)
    : name_(std::move(name)), rules_(std::move(rules)), requests_(rules_.limits.requests_per_minute, now),
      tokens_(rules_.limits.tokens_per_minute, now) {}

void Account::set_rules(Rules rules, Clock::time_point now) {
  rules_ = std::move(rules);
  requests_.set_limit(rules_.limits.requests_per_minute, now);
  tokens_.set_limit(rules_.limits.tokens_per_minute, now);
}

bool Account::is_unused(Clock::time_point now) {
  return running_ == 0 && requests_.until_full(now).count() == 0 && tokens_.until_full(now).count() == 0;
}

void Account::append_headers(http::Headers& headers, Clock::time_point now) const {
  append_bucket(headers, "requests", requests_, now);
  append_bucket(headers, "tokens", tokens_, now);
}

Result<Visit> Visit::begin(std::shared_ptr<Account> account, Clock::time_point now) {
  const std::uint32_t most = account->rules().limits.concurrent_requests;
  if (most > 0 && account->running() >= most)
    return rate_limited(fmt::format("{} of your requests are running, and no more may at once", most), kForAnother);
  const milliseconds wait = account->requests_.wait_for(1, now);
  if (wait.count() > 0)
    return rate_limited(fmt::format("you have sent the {} requests that you may in a minute", account->requests_.per_minute()), wait);
  account->requests_.take(1);
  return Visit(std::move(account));
}

Visit::~Visit() {
  if (account_ != nullptr) --account_->running_;
}

Result<void> Visit::take_prompt(std::size_t tokens, Clock::time_point now) {
  TokenBucket& bucket = account_->tokens_;
  if (bucket.limited() && tokens > bucket.per_minute())
    return invalid_argument(
        fmt::format("the prompt has {} tokens, more than the {} that you may use in a minute", tokens, bucket.per_minute()));
  const milliseconds wait = bucket.wait_for(static_cast<double>(tokens), now);
  if (wait.count() > 0)
    return rate_limited(
        fmt::format("you may use {} tokens in a minute, and too few are left for a prompt of {}", bucket.per_minute(), tokens), wait);
  bucket.take(static_cast<double>(tokens));
  return {};
}

}  // namespace braid::net::access
