// A thread with a connection of its own to a Redis: what it is given it does one after the other.
#pragma once

#include "braid/result.h"
#include "store/redis/address.h"
#include "store/redis/connection.h"
#include "store/redis/health.h"
#include "store/redis/name_lookup.h"
#include "store/worker.h"

#include <functional>
#include <memory>

namespace braid::store {

// All outlive it. Destroying it waits for what it does, which ends once `stop` can be read, and drops the rest.
class RedisLane {
 public:
  using Clock = RedisConnection::Clock;

  RedisLane(const RedisAddress& address, const Resolver& resolve, RedisHealth& health, int stop)
      : address_(address), health_(health), stop_(stop), lookup_(address.host, resolve), worker_(1) {}

  // From any thread.
  void submit(std::function<void()> task) { worker_.submit(std::move(task)); }

  // By a task, on its thread. An error without a sentence: nobody asks at present, or its time was up before its turn came.
  Result<void> use(Clock::time_point deadline, const std::function<Result<void>(RedisConnection&)>& command);

 private:
  Result<void> connect(Clock::time_point deadline);

  const RedisAddress& address_;
  RedisHealth& health_;
  const int stop_;
  NameLookup lookup_;
  std::unique_ptr<RedisConnection> connection_;  // null: none yet, or the last one failed
  Worker worker_;                                // last: its thread uses the others
};

}  // namespace braid::store
