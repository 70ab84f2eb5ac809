// The ranks of a model as the server has them: it starts them, outlives them, and is none of them.
#pragma once

#include "braid/result.h"
#include "ranks/channel.h"
#include "ranks/child_process.h"
#include "ranks/message.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::ranks {

struct GroupOptions {
  std::int32_t ranks = 2;
  std::string hostfile = {};              // as mpirun takes it; empty: all on this machine
  std::string listen = "127.0.0.1:0";     // where ranks reach the server; with a hostfile an address that other machines see
  std::string mpirun = "mpirun";          // looked for in PATH
  std::string program = "braid-rank";     // on each machine
  std::chrono::seconds start_limit{60};   // until all have come
  std::chrono::seconds load_limit{1800};  // until all have loaded
  std::chrono::seconds answer_limit{30};  // of a pass
};

// One thread at a time: the one that loads, then the strand.
class RankGroup {
 public:
  // Returns when all ranks have come. kIo: mpirun or a rank did not start, with what to look at.
  static Result<std::unique_ptr<RankGroup>> start(const GroupOptions& options);
  // Of ranks that somebody else has started and that know this key.
  static Result<std::unique_ptr<RankGroup>> admit(Listener& listener, const std::string& key, const GroupOptions& options);
  ~RankGroup();  // ends the job
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // All load. kUnsupported: they disagree in tier or KV type, whose bits differ.
  Result<Ready> set_up(const Setup& setup);
  // All make a pool of so many blocks.
  Result<void> allocate(std::int32_t blocks);

  // To all of them. kIo: one is gone.
  Result<void> tell(Kind kind, std::span<const std::byte> bytes);
  // What the first one says next. kIo: one of them is gone, or it takes longer than it may. Valid until the next call.
  Result<std::span<const std::byte>> values();

 private:
  RankGroup(GroupOptions options, std::optional<ChildProcess> job) : options_(std::move(options)), job_(std::move(job)) {}

  Result<void> admit_all(Listener& listener, const std::string& key);
  Result<Ready> ready_of_all(std::chrono::milliseconds limit);
  Result<const Channel::Message*> receive_from(std::size_t rank, std::chrono::milliseconds limit);
  Error why_gone(std::size_t rank);
  Error lost(std::size_t rank, const std::string& why) const;

  const GroupOptions options_;
  std::optional<ChildProcess> job_;  // mpirun
  std::vector<Channel> channels_;    // by rank
};

}  // namespace braid::ranks
