#include "ranks/rank_group.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace braid::ranks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostGreeting = 4096;
constexpr std::chrono::seconds kGreetingLimit{5};
constexpr std::chrono::milliseconds kTickInterval{100};
constexpr std::chrono::seconds kOrdinaryEnd{2};

Result<std::string> make_key() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, fmt::format("no random bytes: {}", std::strerror(errno)), {}};
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

// In a time that does not depend on where they differ.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

std::vector<std::string> command_of(const GroupOptions& options) {
  std::vector<std::string> command{options.mpirun, "-np", std::to_string(options.ranks)};
  if (options.on_nodes) {
    command.insert(command.end(), {"--map-by", "numa", "--bind-to", "numa:overload-allowed"});
  } else {
    command.insert(command.end(), {"--bind-to", "none"});
  }
  if (!options.hosts.empty()) {
    command.insert(command.end(), {"--host", options.hosts});
  } else if (options.hostfile.empty()) {
    command.insert(command.end(), {"--oversubscribe"});
  } else {
    command.insert(command.end(), {"--hostfile", options.hostfile});
  }
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");  // with the rights that the server has already
  command.insert(command.end(), {"-x", "BRAID_RANKS_SERVER", "-x", "BRAID_RANKS_KEY", "-x", "BRAID_RANKS_LIMIT", "-x", "BRAID_RANKS_STAGES",
                                 options.program});
  return command;
}

// Of this process's own, and who to greet.
std::vector<std::string> environment_of(const std::string& address, const std::string& key, const GroupOptions& options) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  variables.push_back("BRAID_RANKS_SERVER=" + address);
  variables.push_back("BRAID_RANKS_KEY=" + key);
  variables.push_back(fmt::format("BRAID_RANKS_LIMIT={}", options.answer_limit.count()));
  variables.push_back(fmt::format("BRAID_RANKS_STAGES={}", options.stages));
  return variables;
}

// Whether one of them is ready before the end. `tick`, if any, is called meanwhile.
bool wait_for_one(std::span<pollfd> all, Clock::time_point end, const std::function<void()>& tick) {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (tick) {
      tick();
      left = std::min(left, kTickInterval);
    }
    const int ready = poll(all.data(), all.size(), static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= end) return false;
  }
}

// What all of them have said, and of sizes the largest; where they compute in different ways, their bits differ.
Result<Ready> agreed(std::span<const std::optional<Ready>> ready) {
  Ready all = *ready.front();
  for (std::size_t rank = 0; rank < ready.size(); ++rank) {
    if (ready[rank]->isa != all.isa || ready[rank]->kv_type != all.kv_type)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("rank 0 computes as {} and rank {} as {}: give --isa and --kv-dtype, so that all do the same", all.isa, rank,
                               ready[rank]->isa),
                   {}};
    all.weight_bytes = std::max(all.weight_bytes, ready[rank]->weight_bytes);
    all.block_bytes = std::max(all.block_bytes, ready[rank]->block_bytes);
    all.workspace_bytes = std::max(all.workspace_bytes, ready[rank]->workspace_bytes);
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::start(const GroupOptions& options) {
  auto listener = Listener::open(options.listen);
  if (!listener) return listener.error();
  const Result<std::string> key = make_key();
  if (!key) return key.error();
  if (!options.nodes.empty()) return start_here(options, *listener, *key);
  auto job = ChildProcess::start(command_of(options), environment_of(listener->address(), *key, options));
  if (!job) return Error{job.error().code, job.error().message + " (Debian: apt-get install openmpi-bin)", {}};
  std::unique_ptr<RankGroup> group(new RankGroup(options, std::move(*job)));
  if (const Result<void> admitted = group->admit_all(*listener, *key); !admitted) return admitted.error();
  return group;
}

Result<std::unique_ptr<RankGroup>> RankGroup::start_here(const GroupOptions& options, Listener& listener, const std::string& key) {
  std::unique_ptr<RankGroup> group(new RankGroup(options, {}));
  auto local = LocalRanks::start(options.ranks, options.nodes, listener.address(), key);
  if (!local) return local.error();
  group->local_ = std::move(*local);
  if (const Result<void> admitted = group->admit_all(listener, key); !admitted) return admitted.error();
  return group;
}

Result<std::unique_ptr<RankGroup>> RankGroup::admit(Listener& listener, const std::string& key, const GroupOptions& options) {
  std::unique_ptr<RankGroup> group(new RankGroup(options, {}));
  if (const Result<void> admitted = group->admit_all(listener, key); !admitted) return admitted.error();
  return group;
}

// Who does not know the key, or greets too late, is turned away, and the group goes on waiting.
Result<void> RankGroup::admit_all(Listener& listener, const std::string& key) {
  std::array<std::vector<Channel>, 2> came;
  for (std::vector<Channel>& line : came) line.resize(static_cast<std::size_t>(options_.ranks));
  const auto end = Clock::now() + options_.start_limit;
  const Tick tick = [this] {
    if (options_.progress) options_.progress("ranks", 0, 0);
  };
  for (std::int32_t count = 0; count < 2 * options_.ranks;) {
    std::array<pollfd, 2> both{{{listener.socket(), POLLIN, 0}, {job_ ? job_->handle() : -1, POLLIN, 0}}};
    if (!wait_for_one(both, end, tick))
      return Error{ErrorCode::kIo,
                   fmt::format("{} of {} ranks came within {:.0f} s", count / 2, options_.ranks,
                               std::chrono::duration<double>(options_.start_limit).count()),
                   {}};
    if (both[0].revents == 0) return Error{ErrorCode::kIo, "mpirun has ended before all ranks came; what it says stands above", {}};
    Result<Channel> channel = listener.accept();
    if (!channel) continue;
    const auto message = channel->receive(kGreetingLimit, kMostGreeting);
    Greeting greeting;
    if (!message || (*message)->kind != Kind::kGreeting || !read((*message)->bytes, greeting) || !same_secret(greeting.key, key)) continue;
    if (greeting.version != BRAID_VERSION)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("rank {} is braid {}, the server is {}: install the same on all machines", greeting.rank, greeting.version,
                               BRAID_VERSION),
                   {}};
    if (greeting.ranks != options_.ranks || greeting.rank < 0 || greeting.rank >= options_.ranks) continue;
    if (greeting.line != 0 && greeting.line != 1) continue;
    Channel& place = came[static_cast<std::size_t>(greeting.line)][static_cast<std::size_t>(greeting.rank)];
    if (!place.is_open()) ++count;
    place = std::move(*channel);
  }
  channels_ = std::move(came[0]);
  second_ = std::move(came[1]);
  times_.resize(channels_.size());
  auto watch = RankWatch::of(channels_, job_ ? job_->handle() : -1);
  if (!watch) return watch.error();
  watch_ = std::move(*watch);
  return {};
}

// Ranks end in order once their connections are closed, unless one of them is in the middle of something.
RankGroup::~RankGroup() {
  channels_.clear();
  second_.clear();
  if (job_ && is_sound_) job_->await(kOrdinaryEnd);
}

Result<Ready> RankGroup::set_up(const Setup& setup) {
  Bytes bytes;
  write(setup, bytes);
  if (const Result<void> told = tell(Kind::kSetup, bytes); !told) return told.error();
  return ready_of_all();
}

Result<void> RankGroup::allocate(std::int32_t blocks) {
  Bytes bytes;
  write(blocks, bytes);
  if (const Result<void> told = tell(Kind::kAllocate, bytes); !told) return told;
  const Result<Ready> ready = ready_of_all();
  is_sound_ = ready.has_value();
  return ready ? Result<void>{} : ready.error();
}

// Each is heard as it speaks, so that one that says nothing is found while others still load.
Result<Ready> RankGroup::ready_of_all() {
  std::vector<std::optional<Ready>> ready(channels_.size());
  std::vector<Clock::time_point> silent_until(channels_.size(), Clock::now() + options_.load_limit);
  LoadStage stage{"ranks", 0, 0};  // of the first one
  const Tick tick = [this, &stage] {
    if (options_.progress) options_.progress(stage.what, stage.done, stage.total);
  };
  for (std::vector<pollfd> all(channels_.size());;) {
    Clock::time_point end = Clock::time_point::max();
    std::size_t quietest = channels_.size();
    for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
      all[rank] = {channels_[rank].socket(), static_cast<short>(ready[rank] ? POLLRDHUP : POLLIN), 0};
      if (!ready[rank] && silent_until[rank] < end) end = silent_until[quietest = rank];
    }
    if (quietest == channels_.size()) return agreed(ready);
    if (!wait_for_one(all, end, tick)) return lost(quietest, "it says nothing while it loads");
    for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
      if (all[rank].revents == 0) continue;
      if (ready[rank]) return why_gone(channels_[rank], rank);
      if (const Result<void> heard = hear_loading(rank, ready[rank], stage); !heard) return heard.error();
      silent_until[rank] = Clock::now() + options_.load_limit;
    }
  }
}

Result<void> RankGroup::hear_loading(std::size_t rank, std::optional<Ready>& ready, LoadStage& stage) {
  const auto message = channels_[rank].receive(options_.answer_limit);
  if (!message) return lost(rank, message.error().message);
  const Bytes& bytes = (*message)->bytes;
  switch ((*message)->kind) {
    case Kind::kFailure:
      return failure_of(bytes);
    case Kind::kReady:
      if (!read(bytes, ready.emplace())) break;
      return {};
    case Kind::kProgress: {
      LoadStage own;
      if (!read(bytes, own)) break;
      if (rank == 0) stage = std::move(own);
      return {};
    }
    default:
      break;
  }
  return lost(rank, "it says what is not understood");
}

Result<void> RankGroup::tell(Kind kind, std::span<const std::byte> bytes) {
  for (std::size_t rank = 0; rank < channels_.size(); ++rank)
    if (const Result<void> told = tell(rank, kind, bytes); !told) return told;
  return {};
}

Result<void> RankGroup::tell(std::size_t rank, Kind kind, std::span<const std::byte> bytes) {
  const Result<void> sent = channels_[rank].send(kind, bytes);
  return sent ? sent : lost(rank, sent.error().message);
}

Result<std::span<const Times>> RankGroup::run(std::span<const std::byte> pass) {
  if (const Result<void> told = tell(Kind::kPass, pass); !told) return told.error();
  for (std::size_t rank = 0; rank < channels_.size(); ++rank) {
    const auto message = receive_from(channels_, rank, options_.answer_limit);
    if (!message) return message.error();
    if ((*message)->kind != Kind::kDone || !read((*message)->bytes, times_[rank])) return lost(rank, "it says what was not asked for");
  }
  return std::span<const Times>(times_);
}

Result<std::span<const std::byte>> RankGroup::values(std::size_t rank) {
  const auto message = receive_from(channels_, rank, options_.answer_limit);
  if (!message) return message.error();
  if ((*message)->kind != Kind::kValues) return lost(rank, "it says what was not asked for");
  return std::span<const std::byte>((*message)->bytes);
}

void RankGroup::abandon() const {
  for (const std::vector<Channel>* lines : {&channels_, &second_})
    for (const Channel& line : *lines) line.hang_up();
}

// When an answer is missing, what comes later on these lines belongs to nothing that is asked: all of them end, which the watch tells.
Result<void> RankGroup::hand_out(std::initializer_list<Parcel> parcels, std::vector<Bytes>* answers) {
  const auto gone = [this](Error error) {
    abandon();
    error.code = ErrorCode::kModelNotLoaded;
    return error;
  };
  for (std::size_t rank = 0; rank < second_.size(); ++rank)
    for (const Parcel& parcel : parcels)
      if (const Result<void> sent = second_[rank].send(parcel.kind, parcel.bytes); !sent) return gone(lost(rank, sent.error().message));
  Result<void> taken;
  for (std::size_t rank = 0; rank < second_.size(); ++rank) {
    const auto message = receive_from(second_, rank, options_.load_limit);
    if (!message) return gone(message.error());
    const Bytes& sentence = (*message)->bytes;
    if ((*message)->kind == Kind::kTaken && answers != nullptr) answers->push_back(sentence);
    if ((*message)->kind == Kind::kTaken || !taken) continue;
    taken = Error{ErrorCode::kUnsupported,
                  fmt::format("rank {}: {}", rank, std::string_view(reinterpret_cast<const char*>(sentence.data()), sentence.size())),
                  {}};
  }
  return taken;
}

// What others say meanwhile is read later; that one of them has ended is noticed now.
Result<const Channel::Message*> RankGroup::receive_from(std::vector<Channel>& lines, std::size_t rank, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  std::vector<pollfd> all;
  for (std::size_t i = 0; i < lines.size(); ++i) all.push_back({lines[i].socket(), static_cast<short>(i == rank ? POLLIN : POLLRDHUP), 0});
  if (!wait_for_one(all, end, {})) return lost(rank, "it does not answer");
  if (all[rank].revents == 0) {
    const auto gone = std::ranges::find_if(all, [](const pollfd& one) { return one.revents != 0; });
    const auto which = static_cast<std::size_t>(gone - all.begin());
    return why_gone(lines[which], which);
  }
  auto message = lines[rank].receive(limit);
  if (!message) return lost(rank, message.error().message);
  if ((*message)->kind == Kind::kFailure) return failure_of((*message)->bytes);
  return message;
}

// It may have said so, after what it was asked for.
Error RankGroup::why_gone(Channel& line, std::size_t rank) {
  while (const auto message = line.receive(std::chrono::milliseconds(100)))
    if ((*message)->kind == Kind::kFailure) return failure_of((*message)->bytes);
  return lost(rank, "it has ended");
}

Error RankGroup::failure_of(const Bytes& sentence) {
  is_sound_ = false;
  return {ErrorCode::kUnsupported, std::string(reinterpret_cast<const char*>(sentence.data()), sentence.size()), {}};
}

Error RankGroup::lost(std::size_t rank, const std::string& why) {
  is_sound_ = false;
  return {ErrorCode::kIo, fmt::format("rank {} of {} is lost: {}", rank, channels_.size(), why), {}};
}

}  // namespace braid::ranks
