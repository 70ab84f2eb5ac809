#include "ranks/remote_passes.h"

#include "model/require.h"

#include <cstring>

namespace braid::ranks {

void RemotePasses::move(const step::StepPlan& plan) {
  model::require(plan.saves.empty() && plan.loads.empty() && plan.checks.empty(), "blocks of ranks neither leave them nor are compared");
  moves_.forks.clear();
  for (const step::BlockFork& fork : plan.forks) moves_.forks.push_back({fork.from, fork.to});
  moves_.given_back.assign(plan.given_back.begin(), plan.given_back.end());
  if (moves_.empty()) return;
  write(moves_, bytes_);
  tell(Kind::kMoves);
}

void RemotePasses::run(const step::Pass& pass) {
  require_ranks();
  write(pass, bytes_);
  const auto times = group_->run(bytes_);
  if (!times) lose(times.error().message);
  const auto add = [](std::atomic<double>& sum, double value) {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  };
  for (std::size_t rank = 0; rank < times_.size(); ++rank) {
    add(times_[rank].compute, (*times)[rank].compute);
    add(times_[rank].exchange, (*times)[rank].exchange);
  }
}

model::Rows RemotePasses::logits(std::int64_t begin, std::int64_t count) {
  logits_.resize(static_cast<std::size_t>(count * vocab_));
  const std::span<const std::byte> values = ask(Kind::kLogits, {begin, count}, logits_.size());
  std::memcpy(logits_.data(), values.data(), values.size());
  return {.data = logits_.data(), .stride = vocab_};
}

void RemotePasses::hidden(std::int64_t picked, std::span<float> out) {
  const std::span<const std::byte> values = ask(Kind::kHidden, {picked, 1}, out.size());
  std::memcpy(out.data(), values.data(), values.size());
}

void RemotePasses::tell(Kind kind) {
  require_ranks();
  if (const Result<void> told = group_->tell(kind, bytes_); !told) lose(told.error().message);
}

void RemotePasses::require_ranks() const {
  if (!lost_.empty()) throw RanksLost(lost_);
}

// What they had of the pool is gone with them, so nothing that follows can be computed.
void RemotePasses::lose(const std::string& why) {
  lost_ = why;
  if (on_lost_ && !is_abandoned_) on_lost_(why);
  throw RanksLost(why);
}

void RemotePasses::abandon() {
  is_abandoned_ = true;
  group_->abandon();
}

std::vector<Times> RemotePasses::times() const {
  std::vector<Times> times;
  for (const SharedTimes& rank : times_)
    times.push_back({rank.compute.load(std::memory_order_relaxed), rank.exchange.load(std::memory_order_relaxed)});
  return times;
}

std::span<const std::byte> RemotePasses::ask(Kind kind, const Wanted& wanted, std::size_t values) {
  write(wanted, bytes_);
  tell(kind);
  const auto answer = group_->values();
  if (!answer) lose(answer.error().message);
  if (answer->size() != values * sizeof(float)) lose("the first rank has sent another number of values than was asked for");
  return *answer;
}

}  // namespace braid::ranks
