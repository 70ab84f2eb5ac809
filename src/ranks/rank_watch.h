// Tells that a process of a group has ended, also while nobody waits for what it says.
#pragma once

#include "braid/result.h"
#include "ranks/channel.h"

#include <optional>
#include <span>
#include <string>

namespace braid::ranks {

// Any thread, once it is made.
class RankWatch {
 public:
  RankWatch() = default;  // of nobody
  // The channels, and a descriptor that can be read once what started the ranks has ended (-1: there is none), are open for as long.
  static Result<RankWatch> of(std::span<const Channel> channels, int job);
  ~RankWatch();
  RankWatch(RankWatch&& other) noexcept;
  RankWatch& operator=(RankWatch&& other) noexcept;

  int handle() const { return handle_; }  // can be read once one of them has ended; -1: of nobody
  // Who has ended, as a sentence; none: nobody has.
  std::optional<std::string> who_ended() const;

 private:
  int handle_ = -1;  // of epoll
  std::size_t ranks_ = 0;
};

}  // namespace braid::ranks
