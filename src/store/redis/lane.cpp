#include "store/redis/lane.h"

#include <string>
#include <utility>
#include <vector>

namespace braid::store {

Result<void> RedisLane::connect(Clock::time_point deadline) {
  if (connection_ != nullptr && connection_->is_stale()) connection_.reset();
  if (connection_ != nullptr) return {};
  std::vector<std::string> numbers(1);  // a socket has none
  if (address_.socket.empty()) {
    Result<std::vector<std::string>> found = lookup_.numbers(stop_, deadline);
    if (!found) return found.error();
    numbers = std::move(*found);
  }
  Error refusal{ErrorCode::kIo, "its name stands for no address", {}};
  for (const std::string& number : numbers) {
    auto opened = RedisConnection::open(address_, number, stop_, deadline);
    if (opened) {
      connection_ = std::move(*opened);
      return {};
    }
    refusal = opened.error();
  }
  return refusal;
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
