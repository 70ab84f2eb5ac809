#include "app/memory.h"

#include "app/units.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

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

// What is left in one control group. Inactive file pages count as used there, but are given back on demand.
std::uint64_t left_in_group(const fs::path& group, const char* limit_file, const char* usage_file, const char* cache_key) {
  const std::uint64_t limit = read_number(group / limit_file);
  const std::uint64_t used = read_number(group / usage_file);
  if (limit == kUnlimited || used == kUnlimited) return kUnlimited;
  const std::uint64_t reclaimable = std::min(used, read_field(group / "memory.stat", cache_key));
  return limit - std::min(limit, used - reclaimable);
}

// The least of a group and its ancestors: a limit anywhere above binds too.
std::uint64_t left_in_hierarchy(const fs::path& mount, fs::path group, const char* limit_file, const char* usage_file,
                                const char* cache_key) {
  std::uint64_t least = kUnlimited;
  for (;;) {
    least = std::min(least, left_in_group(mount / group.relative_path(), limit_file, usage_file, cache_key));
    if (!group.has_relative_path()) return least;
    group = group.parent_path();
  }
}

}  // namespace

Result<std::uint64_t> available_memory(const char* root) {
  const fs::path base(root);
  const fs::path memory = base / "proc/meminfo";
  if (!std::ifstream(memory))
    return Error{ErrorCode::kIo, fmt::format("cannot find out how much memory there is: {}: {}", memory.string(), std::strerror(errno)),
                 ""};
  std::uint64_t available = read_field(memory, "MemAvailable:") * 1024U;
  std::ifstream groups(base / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path" is v2, "7:memory:/path" v1
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      available = std::min(available, left_in_hierarchy(base / "sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file"));
    } else if (controllers == "memory") {
      available = std::min(available, left_in_hierarchy(base / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                                                        "memory.usage_in_bytes", "total_inactive_file"));
    }
  }
  return available;
}

Result<KvBudget> plan_kv(const KvDemand& demand) {
  const std::uint64_t bytes = demand.asked.value_or(demand.available / 2);
  if (demand.asked && *demand.asked > demand.available)
    return invalid_argument(fmt::format("--kv-memory {} is more than the {} available after loading the model", format_size(*demand.asked),
                                        format_size(demand.available)));
  const auto block_tokens = static_cast<std::uint64_t>(demand.block_tokens);
  const std::uint64_t fitting = bytes / demand.block_bytes;
  const bool any_length = demand.window_blocks > 0 && static_cast<std::uint64_t>(demand.window_blocks) <= fitting;
  const std::uint64_t fitting_tokens = any_length ? std::numeric_limits<std::uint64_t>::max() : fitting * block_tokens;
  const auto wanted = static_cast<std::uint64_t>(demand.asked_context.value_or(demand.model_context));
  if (fitting == 0 || (demand.asked_context && wanted > fitting_tokens))
    return invalid_argument(fmt::format(
        "{} of KV memory holds {} tokens, but one sequence of {} needs {}: raise --kv-memory or lower --ctx", format_size(bytes),
        fitting_tokens, wanted, format_size((wanted + block_tokens - 1) / block_tokens * demand.block_bytes)));
  const std::uint64_t context = std::min(wanted, fitting_tokens);
  const std::uint64_t usable = (context + block_tokens - 1) / block_tokens * static_cast<std::uint64_t>(demand.max_batch);
  const std::uint64_t blocks = std::min({fitting, usable, static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())});
  return KvBudget{static_cast<std::int32_t>(blocks), static_cast<std::int32_t>(context), blocks * demand.block_bytes};
}

}  // namespace braid::app
