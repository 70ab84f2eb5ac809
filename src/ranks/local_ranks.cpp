#include "ranks/local_ranks.h"

#include "kernels/memory_nodes.h"
#include "ranks/rank_loop.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace braid::ranks {
namespace {

// Ranks compute equal shares, so the others come soon.
constexpr int kTurns = 2000;

class MeetingExchange final : public model::Exchange {
 public:
  MeetingExchange(Meeting& meeting, std::int32_t rank) : meeting_(meeting), rank_(rank) {}

  void gather(std::span<const float> own, std::span<const std::size_t>, std::span<float> all) override { meeting_.gather(rank_, own, all); }

 private:
  Meeting& meeting_;
  const std::int32_t rank_;
};

}  // namespace

class Meeting::Inside {
 public:
  explicit Inside(std::atomic<std::uint32_t>& count) : count_(count) { ++count_; }
  ~Inside() {
    if (--count_ == 0) count_.notify_all();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<std::uint32_t>& count_;
};

void Meeting::gather(std::int32_t rank, std::span<const float> own, std::span<float> all) {
  try {
    const Inside inside(inside_);
    parts_[static_cast<std::size_t>(rank)] = own;
    meet();
    auto out = all.begin();
    for (const std::span<const float> part : parts_) out = std::ranges::copy(part, out).out;
    meet();  // nobody's values go before all have read them
  } catch (...) {
    for (std::uint32_t left = inside_; left != 0; left = inside_) inside_.wait(left);  // some may be reading yet
    throw;
  }
}

// Which meeting it is comes first: one that is over by then is noticed, and one that ends afterwards counts on.
void Meeting::meet() {
  const std::uint32_t which = meetings_.load(std::memory_order_acquire);
  if (!is_over_.load(std::memory_order_acquire)) {
    if (came_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts_.size()) {
      came_.store(0, std::memory_order_relaxed);
      meetings_.fetch_add(1, std::memory_order_acq_rel);
      meetings_.notify_all();
      return;
    }
    for (int turn = 0; turn < kTurns && meetings_.load(std::memory_order_acquire) == which; ++turn) std::this_thread::yield();
    meetings_.wait(which, std::memory_order_acquire);
  }
  if (is_over_.load(std::memory_order_acquire)) throw std::runtime_error("a rank of the model is gone");
}

void Meeting::leave() {
  is_over_.store(true, std::memory_order_release);
  meetings_.fetch_add(1, std::memory_order_acq_rel);
  meetings_.notify_all();
}

Result<std::unique_ptr<LocalRanks>> LocalRanks::start(std::int32_t ranks, const std::vector<std::vector<int>>& nodes,
                                                      const std::string& address, const std::string& key) {
  std::unique_ptr<LocalRanks> all(new LocalRanks(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    for (std::vector<Channel>* line : {&all->passes_, &all->second_}) {
      Result<Channel> channel = Channel::connect(address);
      if (!channel) return channel.error();
      line->push_back(std::move(*channel));
    }
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    all->threads_.emplace_back(
        [own = all.get(), rank, cpus = nodes[static_cast<std::size_t>(rank) % nodes.size()], key] { own->run(rank, cpus, key); });
  return all;
}

// Its weights, its pool and what it computes with are written first by its own threads.
void LocalRanks::run(std::int32_t rank, const std::vector<int>& cpus, const std::string& key) {
  kernels::stay_on(cpus);
  const auto which = static_cast<std::size_t>(rank);
  MeetingExchange exchange(meeting_, rank);
  const Seat seat{.rank = rank, .ranks = static_cast<std::int32_t>(passes_.size()), .exchange = &exchange};
  (void)serve_passes({passes_[which], second_[which]}, key, seat);  // what goes wrong it tells the server
  passes_[which].hang_up();                                         // which the server notices
  meeting_.leave();
}

LocalRanks::~LocalRanks() {
  for (const std::vector<Channel>* line : {&passes_, &second_})
    for (const Channel& channel : *line) channel.hang_up();
  meeting_.leave();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace braid::ranks
