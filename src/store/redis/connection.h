// One connection to a Redis, for a thread that may wait: for each step until a deadline.
#pragma once

#include "braid/result.h"
#include "store/redis/address.h"

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct redisContext;
struct redisReader;

namespace braid::store {

struct RedisReply {
  enum class Kind { kNothing, kNumber, kText, kError };
  Kind kind = Kind::kError;
  long long number = 0;
  std::size_t bytes = 0;  // of a text, which may not have fitted
  // Of an error its first word, such as OOM: what else a Redis says may repeat what it was sent.
  std::string error = "what was not asked for";
};

// Used by one thread. After an error it is of no use any more: what was asked may still be answered.
class RedisConnection {
 public:
  using Clock = std::chrono::steady_clock;

  // Signed in, with the address's database; `number` is one of those that its host stands for. Once `stop` can be read, everything ends with
  // an error.
  static Result<std::unique_ptr<RedisConnection>> open(const RedisAddress& address, const std::string& number, int stop,
                                                       Clock::time_point deadline);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  // Adds a command to what is sent next.
  void add(std::initializer_list<std::string_view> words);
  Result<void> send(Clock::time_point deadline);
  // The answer to the command that has none yet. A text goes to `place`, if it fits there; one that could never is an error.
  Result<RedisReply> receive(std::span<std::byte> place, Clock::time_point deadline);

  // Nothing was asked, and yet there is something to be read: the other side has closed it, or talks nonsense.
  bool is_stale() const;

 private:
  RedisConnection(redisContext* context, int stop);
  Result<void> wait(short events, Clock::time_point deadline) const;
  Result<void> sign_in(const RedisAddress& address, Clock::time_point deadline);
  Result<void> read_some(Clock::time_point deadline);

  redisContext* const context_;  // for its socket
  redisReader* const reader_;
  const int stop_;
  std::string unsent_;
};

}  // namespace braid::store
