#include "kernels/thread_team.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sched.h>
#include <sstream>
#include <string>
#include <vector>

namespace braid::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSets = 64;  // of 1,024 processors each

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Whole processors of quota / period: a fraction of one more would only throttle the team at its barriers.
std::optional<int> whole_cpus(const std::string& quota, const std::string& period) {
  char* end = nullptr;
  const double quota_us = std::strtod(quota.c_str(), &end);
  if (end == quota.c_str() || quota_us <= 0) return std::nullopt;  // "max", -1 or nothing
  const double period_us = std::strtod(period.c_str(), nullptr);
  if (period_us <= 0) return std::nullopt;
  return static_cast<int>(std::clamp(quota_us / period_us, 1.0, 4096.0));
}

std::optional<int> quota_v2(const fs::path& group) {
  std::istringstream line(first_line(group / "cpu.max"));
  std::string quota;
  std::string period;
  line >> quota >> period;
  return whole_cpus(quota, period);
}

std::optional<int> quota_v1(const fs::path& group) {
  return whole_cpus(first_line(group / "cpu.cfs_quota_us"), first_line(group / "cpu.cfs_period_us"));
}

// The smallest quota from the group up to the hierarchy's mount. Inside a container the group's path may not exist below the
// mount; its levels then read as unlimited and the mount itself counts.
template <class Quota>
int cut(int cpus, const fs::path& mount, const std::string& group, Quota quota) {
  fs::path relative = fs::path(group).relative_path();
  for (;;) {
    if (const std::optional<int> limit = quota(relative.empty() ? mount : mount / relative)) cpus = std::min(cpus, *limit);
    if (relative.empty()) return cpus;
    relative = relative.parent_path();
  }
}

bool names_cpu(const std::string& controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<cpu_set_t> sets(1);  // more where the system may have more processors than one has bits for
  while (sched_getaffinity(0, sets.size() * sizeof(cpu_set_t), sets.data()) != 0 && errno == EINVAL && sets.size() < kMostSets)
    sets.assign(2 * sets.size(), cpu_set_t{});
  std::vector<int> cpus;
  for (std::size_t cpu = 0; cpu < sets.size() * CPU_SETSIZE; ++cpu)
    if (CPU_ISSET_S(cpu, sets.size() * sizeof(cpu_set_t), sets.data())) cpus.push_back(static_cast<int>(cpu));
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int usable_cpus(const char* root) {
  const fs::path base(root);
  const fs::path mounts = base / "sys/fs/cgroup";
  int cpus = static_cast<int>(allowed_cpus().size());
  std::ifstream groups(base / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      cpus = cut(cpus, mounts, group, quota_v2);
    } else if (names_cpu(controllers)) {
      cpus = cut(cpus, mounts / controllers, group, quota_v1);
      cpus = cut(cpus, mounts / "cpu", group, quota_v1);
    }
  }
  return std::max(1, cpus);
}

}  // namespace braid::kernels
