// The ranks of a model as the server has them: it starts them, outlives them, and is none of them.
#pragma once

#include "braid/result.h"
#include "files/progress.h"
#include "ranks/channel.h"
#include "ranks/child_process.h"
#include "ranks/local_ranks.h"
#include "ranks/message.h"
#include "ranks/rank_watch.h"
#include "ranks/seat.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::ranks {

struct GroupOptions {
  std::int32_t ranks = 2;
  std::int32_t stages = 1;
  bool on_nodes = false;                           // each stays on a memory node of its machine, the next one on the next
  std::vector<std::vector<int>> nodes = {};        // processors of memory nodes for threads of this process; none: mpirun starts ranks
  std::string hostfile = {};                       // as mpirun takes it; empty: all on this machine
  std::string hosts = {};                          // "a:1,b:1" instead of a hostfile
  std::string listen = "127.0.0.1:0";              // where ranks reach the server; with a hostfile an address that other machines see
  std::string mpirun = "mpirun";                   // looked for in PATH
  std::string program = "braid-rank";              // on each machine
  std::chrono::milliseconds start_limit{60'000};   // until all have come
  std::chrono::milliseconds load_limit{300'000};   // for which one that loads may say nothing
  std::chrono::milliseconds answer_limit{30'000};  // of a pass
  // Of the first rank; called ten times a second, and more, by the thread that loads while it waits. What it throws ends the wait.
  files::Progress progress = {};
};

// One thread at a time: the one that loads, then the strand; but for what says otherwise.
class RankGroup {
 public:
  // Returns when all ranks have come. kIo: mpirun or a rank did not start, with what to look at. Threads of this process are in one stage.
  static Result<std::unique_ptr<RankGroup>> start(const GroupOptions& options);
  // Of ranks that somebody else has started and that know this key.
  static Result<std::unique_ptr<RankGroup>> admit(Listener& listener, const std::string& key, const GroupOptions& options);
  ~RankGroup();  // ends the job
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  std::int32_t size() const { return options_.ranks; }

  // All load; of sizes the largest. kUnsupported: they disagree in tier or KV type, whose bits differ.
  Result<Ready> set_up(const Setup& setup);
  // All make a pool of so many blocks.
  Result<void> allocate(std::int32_t blocks);

  // To all of them. kIo: one is gone.
  Result<void> tell(Kind kind, std::span<const std::byte> bytes);
  // All compute a pass: what each took. kIo: one of them is gone, or it takes longer than it may. Valid until the next call.
  Result<std::span<const Times>> run(std::span<const std::byte> pass);
  // To one of them, likewise.
  Result<void> tell(std::size_t rank, Kind kind, std::span<const std::byte> bytes);
  // What one says next; errors as above. Valid until the next call for this rank.
  Result<std::span<const std::byte>> values(std::size_t rank);
  // The rank that says what all have computed.
  std::size_t speaker() const { return static_cast<std::size_t>(Seat::speaker(options_.ranks, options_.stages)); }

  // What is handed out beside passes, as one message or several: returns when each rank has taken it, or has refused it. kUnsupported: one
  // has; kModelNotLoaded: one is gone, or does not answer, and the group with it. Any thread, one at a time.
  struct Parcel {
    Kind kind;
    std::span<const std::byte> bytes;
  };
  // answers[rank] is what each has to say about it, if that is asked for.
  Result<void> hand_out(std::initializer_list<Parcel> parcels, std::vector<Bytes>* answers = nullptr);

  // Whatever waits for a rank ends with an error, soon. Any thread.
  void abandon() const;

  // Of all of them, and mpirun. Any thread.
  const RankWatch& watch() const { return watch_; }

 private:
  using Tick = std::function<void()>;

  static Result<std::unique_ptr<RankGroup>> start_here(const GroupOptions& options, Listener& listener, const std::string& key);
  RankGroup(GroupOptions options, std::optional<ChildProcess> job) : options_(std::move(options)), job_(std::move(job)) {}

  Result<void> admit_all(Listener& listener, const std::string& key);
  Result<Ready> ready_of_all();
  Result<void> hear_loading(std::size_t rank, std::optional<Ready>& ready, LoadStage& stage);
  Result<const Channel::Message*> receive_from(std::vector<Channel>& lines, std::size_t rank, std::chrono::milliseconds limit);
  Error why_gone(Channel& line, std::size_t rank);
  Error failure_of(const Bytes& sentence);
  Error lost(std::size_t rank, const std::string& why);

  const GroupOptions options_;
  std::optional<ChildProcess> job_;    // mpirun
  std::unique_ptr<LocalRanks> local_;  // or threads
  std::vector<Channel> channels_;      // of passes, by rank
  std::vector<Channel> second_;        // likewise, of what is handed out
  RankWatch watch_;
  std::vector<Times> times_;
  std::atomic<bool> is_sound_{false};  // all have loaded, and none is lost
};

}  // namespace braid::ranks
