#include "app/memory.h"

#include "app/units.h"
#include "sched/groups.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <utility>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// kServerMemory as address space: stacks of the threads that are still to come, and the pieces in which the heap grows.
constexpr std::uint64_t kServerAddressSpace = std::uint64_t{128} << 20;
constexpr std::uint64_t kPageTableShare = 512;  // eight bytes for a page of 4 KiB

// The number in a one-value file; "max" and absent files are unlimited.
std::uint64_t read_number(const fs::path& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  return in >> value ? value : kUnlimited;
}

// The number behind `key` in a file of "key value" lines, or 0.
std::uint64_t read_field(const fs::path& path, std::string_view key) {
  std::ifstream in(path);
  std::string name;
  std::uint64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

// The tightest of what has been looked at.
struct Bound {
  std::uint64_t bytes = kUnlimited;
  std::string name;

  void tighten(std::uint64_t other, std::string other_name) {
    if (other >= bytes) return;
    bytes = other;
    name = std::move(other_name);
  }
};

// How a version of control groups names its files.
struct GroupFiles {
  const char* mount;
  std::array<const char*, 2> limits;
  const char* usage;
  const char* cache_key;  // in memory.stat: file pages that count as used there, but are given back on demand
};
constexpr GroupFiles kVersion1{"sys/fs/cgroup/memory", {"memory.limit_in_bytes", nullptr}, "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current", "inactive_file"};

// A group and its ancestors: a limit anywhere above binds too.
void look_at_groups(const fs::path& base, fs::path group, const GroupFiles& files, Bound& bound) {
  for (;; group = group.parent_path()) {
    const fs::path folder = base / files.mount / group.relative_path();
    std::uint64_t limit = kUnlimited;
    for (const char* file : files.limits)
      if (file != nullptr) limit = std::min(limit, read_number(folder / file));
    const std::uint64_t used = read_number(folder / files.usage);
    if (limit != kUnlimited && used != kUnlimited) {
      const std::uint64_t reclaimable = std::min(used, read_field(folder / "memory.stat", files.cache_key));
      bound.tighten(limit - std::min(limit, used - reclaimable), fmt::format("the limit of {}", folder.string()));
    }
    if (!group.has_relative_path()) return;
  }
}

// Of this process. Where /proc does not say which they are, those that a container sees as the whole.
void look_at_all_groups(const fs::path& base, Bound& bound) {
  std::ifstream groups(base / "proc/self/cgroup");
  if (!groups) {
    look_at_groups(base, "/", kVersion1, bound);
    look_at_groups(base, "/", kVersion2, bound);
  }
  for (std::string line; std::getline(groups, line);) {  // "0::/path" is v2, "7:memory:/path" v1
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) look_at_groups(base, group, kVersion2, bound);
    if (controllers == "memory") look_at_groups(base, group, kVersion1, bound);
  }
}

bool can_map(std::uint64_t bytes) {
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) ::munmap(room, bytes);
  return room != MAP_FAILED;
}

template <class What>  // int, or an enum of the C library's
bool has_limit(What what) {
  rlimit limit{};
  return ::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// To a mebibyte, by trying: it needs neither /proc nor a list of the limits that there are.
void look_at_mappings(Bound& bound) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46;
  std::uint64_t refused = std::min(bound.bytes, kMost) / kStep + 1 + kServerAddressSpace / kStep;
  if (can_map(refused * kStep)) return;
  std::uint64_t granted = 0;
  while (refused - granted > 1) {
    const std::uint64_t middle = granted + (refused - granted) / 2;
    (can_map(middle * kStep) ? granted : refused) = middle;
  }
  granted *= kStep;
  bound.tighten(granted - std::min(granted, kServerAddressSpace), mapping_limit().value_or("vm.overcommit_memory"));
}

}  // namespace

Result<MemoryLeft> memory_left(std::uint64_t untouched, const char* root) {
  const fs::path base(root);
  const fs::path memory = base / "proc/meminfo";
  Bound bound;
  Error unknown{ErrorCode::kIo, {}, {}};
  if (std::ifstream(memory)) {
    bound.tighten(read_field(memory, "MemAvailable:") * 1024U, "the machine's free memory");
  } else {
    unknown.message = fmt::format("cannot find out how much memory there is: {}: {}", memory.string(), std::strerror(errno));
  }
  look_at_all_groups(base, bound);
  if (bound.bytes == kUnlimited) return unknown;
  const std::uint64_t taken = untouched + kServerMemory + bound.bytes / kPageTableShare;
  bound.bytes -= std::min(bound.bytes, taken);
  look_at_mappings(bound);
  return MemoryLeft{bound.bytes, std::move(bound.name)};
}

std::optional<std::string> mapping_limit() {
  const bool data = has_limit(RLIMIT_DATA);
  if (has_limit(RLIMIT_AS)) return data ? "ulimit -v or -d" : "ulimit -v";
  if (data) return "ulimit -d";
  constexpr std::uint64_t kStrict = 2;
  return read_number("/proc/sys/vm/overcommit_memory") == kStrict ? std::optional<std::string>("vm.overcommit_memory") : std::nullopt;
}

bool can_reserve() { return !mapping_limit(); }

Result<std::uint64_t> kv_memory(const MemoryLeft& left, std::optional<std::uint64_t> asked) {
  if (asked && *asked > left.bytes)
    return invalid_argument(fmt::format("--kv-memory {} is more than the {} that {} leaves beside the model", format_size(*asked),
                                        format_size(left.bytes), left.bound));
  return asked.value_or(left.bytes / 2);
}

std::vector<std::uint64_t> divide_memory(std::uint64_t bytes, std::span<const std::uint64_t> most) {
  std::vector<std::size_t> order(most.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t model) { return most[model]; });
  std::vector<std::uint64_t> parts(most.size());
  for (std::size_t i = 0; i < order.size(); ++i) {  // who wants least first: what it leaves is divided anew
    parts[order[i]] = std::min(most[order[i]], bytes / (order.size() - i));
    bytes -= parts[order[i]];
  }
  return parts;
}

std::uint64_t most_usable(const KvDemand& demand) {
  const auto context = static_cast<std::uint64_t>(demand.asked_context.value_or(demand.model_context));
  const auto block_tokens = static_cast<std::uint64_t>(demand.block_tokens);
  const std::uint64_t blocks =
      (context + block_tokens - 1) / block_tokens * demand.groups.size() + 2 * static_cast<std::uint64_t>(demand.state_blocks);
  return blocks * static_cast<std::uint64_t>(demand.max_batch) * demand.block_bytes;
}

Result<KvBudget> plan_kv(const KvDemand& demand) {
  const std::uint64_t bytes = demand.bytes;
  const auto block_tokens = static_cast<std::uint64_t>(demand.block_tokens);
  const std::uint64_t fitting = std::min<std::uint64_t>(bytes / demand.block_bytes, std::numeric_limits<std::int32_t>::max());
  const sched::Groups groups(demand.groups, demand.block_tokens, demand.state_blocks);
  const auto places_of = [&](std::uint64_t tokens) { return static_cast<std::int64_t>((tokens + block_tokens - 1) / block_tokens); };
  const auto blocks_of = [&](std::uint64_t tokens) { return static_cast<std::uint64_t>(groups.blocks_at_once(places_of(tokens))); };
  const auto fitting_tokens = static_cast<std::uint64_t>(groups.most_places(static_cast<std::int64_t>(fitting))) * block_tokens;
  const auto wanted = static_cast<std::uint64_t>(demand.asked_context.value_or(demand.model_context));
  if (fitting_tokens == 0 || (demand.asked_context && wanted > fitting_tokens))
    return invalid_argument(
        fmt::format("{} of KV memory holds {} tokens, but one sequence of {} needs {}: raise --kv-memory or lower --ctx",
                    format_size(bytes), fitting_tokens, wanted, format_size(blocks_of(wanted) * demand.block_bytes)));
  const std::uint64_t context = std::min(wanted, fitting_tokens);
  const std::uint64_t usable = static_cast<std::uint64_t>(places_of(context) * groups.count() + 2 * groups.state_blocks()) *
                               static_cast<std::uint64_t>(demand.max_batch);
  const std::uint64_t blocks = std::min(fitting, usable);
  const std::uint64_t tokens = std::min(fitting_tokens, blocks * block_tokens);
  const std::uint64_t most = std::min<std::uint64_t>(demand.most_bytes / demand.block_bytes, std::numeric_limits<std::int32_t>::max());
  return KvBudget{static_cast<std::int32_t>(blocks), static_cast<std::int32_t>(std::max(blocks, std::min(most, usable))),
                  static_cast<std::int32_t>(context), blocks * demand.block_bytes, static_cast<std::int64_t>(tokens)};
}

}  // namespace braid::app
