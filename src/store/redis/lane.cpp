#include "store/redis/lane.h"

#include <utility>

namespace braid::store {

Result<void> RedisLane::connect(Clock::time_point deadline) {
  if (connection_ != nullptr && connection_->is_stale()) connection_.reset();
  if (connection_ != nullptr) return {};
  auto opened = RedisConnection::open(address_, stop_, deadline);
  if (!opened) return opened.error();
  connection_ = std::move(*opened);
  return {};
}

Result<void> RedisLane::use(Clock::time_point deadline, const std::function<Result<void>(RedisConnection&)>& command) {
  const Clock::time_point now = Clock::now();
  if (health_.is_down(now) || now >= deadline) return Error{ErrorCode::kIo, {}, {}};
  Result<void> done = connect(deadline);
  if (done) done = command(*connection_);
  if (!done) {
    connection_.reset();
    health_.fails();
    return done;
  }
  health_.works();
  return {};
}

}  // namespace braid::store
