#include "ranks/rank_watch.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace braid::ranks {
namespace {

Result<void> add_watched(int handle, int descriptor, std::uint32_t events, std::size_t which) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = which;
  if (epoll_ctl(handle, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return Error{ErrorCode::kIo, fmt::format("ranks cannot be watched: {}", std::strerror(errno)), {}};
}

}  // namespace

Result<RankWatch> RankWatch::of(std::span<const Channel> channels, int job) {
  RankWatch watch;
  watch.ranks_ = channels.size();
  watch.handle_ = epoll_create1(EPOLL_CLOEXEC);
  if (watch.handle_ < 0) return Error{ErrorCode::kIo, fmt::format("ranks cannot be watched: {}", std::strerror(errno)), {}};
  // What they say is not looked at: only that they have ended.
  for (std::size_t rank = 0; rank < channels.size(); ++rank)
    if (const Result<void> added = add_watched(watch.handle_, channels[rank].socket(), EPOLLRDHUP, rank); !added) return added.error();
  if (job >= 0)
    if (const Result<void> added = add_watched(watch.handle_, job, EPOLLIN, channels.size()); !added) return added.error();
  return watch;
}

RankWatch::~RankWatch() {
  if (handle_ >= 0) close(handle_);
}

RankWatch::RankWatch(RankWatch&& other) noexcept : handle_(std::exchange(other.handle_, -1)), ranks_(other.ranks_) {}

RankWatch& RankWatch::operator=(RankWatch&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(ranks_, other.ranks_);
  return *this;
}

std::optional<std::string> RankWatch::who_ended() const {
  epoll_event event{};
  if (handle_ < 0 || epoll_wait(handle_, &event, 1, 0) <= 0) return std::nullopt;
  const std::size_t who = event.data.u64;
  if (who == ranks_) return "mpirun has ended, and with it all ranks";
  return fmt::format("rank {} of {} is lost: it has ended", who, ranks_);
}

}  // namespace braid::ranks
