// Ranks that are threads of the server's own process: one team, with its weights and its pool, on each memory node of a machine.
#pragma once

#include "braid/result.h"
#include "model/share.h"
#include "ranks/channel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace braid::ranks {

// Where they hand each other what they have computed. Its ranks' threads.
class Meeting {
 public:
  explicit Meeting(std::int32_t ranks) : parts_(static_cast<std::size_t>(ranks)) {}

  // Throws std::runtime_error once one of them has left.
  void gather(std::int32_t rank, std::span<const float> own, std::span<float> all);
  // Nobody waits any more, or again.
  void leave();

 private:
  class Inside;

  void meet();

  std::vector<std::span<const float>> parts_;
  std::atomic<std::uint32_t> came_{0};
  std::atomic<std::uint32_t> meetings_{0};
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> is_over_{false};
};

// They find the server as other ranks do, and end when it closes their connections, or when this is destroyed.
class LocalRanks {
 public:
  // nodes: processors, which rank i stays on those of `nodes[i % nodes.size()]`. kIo: the server's address is not reached.
  static Result<std::unique_ptr<LocalRanks>> start(std::int32_t ranks, const std::vector<std::vector<int>>& nodes,
                                                   const std::string& address, const std::string& key);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

 private:
  explicit LocalRanks(std::int32_t ranks) : meeting_(ranks) {}
  void run(std::int32_t rank, const std::vector<int>& cpus, const std::string& key);

  Meeting meeting_;
  std::vector<Channel> passes_;  // by rank
  std::vector<Channel> second_;  // likewise
  std::vector<std::thread> threads_;
};

}  // namespace braid::ranks
