#include "net/rl/sessions.h"

#include <fmt/format.h>

namespace braid::net::rl {
namespace {

std::size_t bytes_of(const std::vector<Tensor>& states) {
  std::size_t bytes = 0;
  for (const Tensor& state : states) bytes += state.floats.size() * sizeof(float) + state.integers.size() * sizeof(std::int64_t);
  return bytes;
}

}  // namespace

Sessions::Turn::~Turn() {
  if (sessions_ != nullptr) sessions_->release(key_);
}

const Sessions::Episode& Sessions::Turn::episode() const { return sessions_->entries_.at(key_).episode; }

Result<void> Sessions::Turn::keep(Episode episode, std::chrono::seconds time_to_live, Clock::time_point now) {
  Entry& entry = sessions_->entries_.at(key_);
  const std::size_t bytes = bytes_of(episode.states);
  if (sessions_->bytes_ - entry.bytes + bytes > sessions_->max_bytes_)
    return Error{.code = ErrorCode::kOverloaded,
                 .message = "the states of all sessions take too much memory; end some, or let the answer carry them",
                 .param = "session",
                 .retry_after = time_to_live};
  sessions_->bytes_ += bytes - entry.bytes;
  entry.episode = std::move(episode);
  entry.bytes = bytes;
  entry.until = now + time_to_live;
  return {};
}

void Sessions::Turn::end() {
  Sessions& sessions = *std::exchange(sessions_, nullptr);
  sessions.erase(sessions.entries_.find(key_));
}

Result<Sessions::Turn> Sessions::begin(std::string_view owner, std::string_view name, std::string_view policy, Clock::time_point now) {
  forget_old(now);
  Key key{std::string(owner), std::string(name)};
  auto entry = entries_.find(key);
  if (entry != entries_.end() && entry->second.in_use)
    return invalid_argument(fmt::format("the session '{}' is taking a step just now: its steps come one after the other", name), "session");
  if (entry != entries_.end() && entry->second.policy != policy) {
    ends_.erase({entry->second.until, key});
    erase(entry);
    entry = entries_.end();
  }
  if (entry == entries_.end()) {
    if (entries_.size() >= max_sessions_)
      return Error{.code = ErrorCode::kOverloaded,
                   .message = fmt::format("there are {} sessions already; end some", entries_.size()),
                   .param = "session",
                   .retry_after = std::chrono::seconds(1)};
    entry = entries_.emplace(key, Entry{}).first;
    entry->second.policy = policy;
    entry->second.until = now;  // without a step it is forgotten at once
  } else {
    ends_.erase({entry->second.until, key});
  }
  entry->second.in_use = true;
  return Turn(*this, std::move(key));
}

void Sessions::forget_old(Clock::time_point now) {
  while (!ends_.empty() && ends_.begin()->first <= now) {
    erase(entries_.find(ends_.begin()->second));
    ends_.erase(ends_.begin());
  }
}

void Sessions::erase(Entries::iterator entry) {
  bytes_ -= entry->second.bytes;
  entries_.erase(entry);
}

void Sessions::release(const Key& key) {
  Entry& entry = entries_.at(key);
  entry.in_use = false;
  ends_.insert({entry.until, key});
}

}  // namespace braid::net::rl
