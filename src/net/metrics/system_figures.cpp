#include "net/metrics/system_figures.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::net {
namespace {

namespace fs = std::filesystem;

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

double resident_bytes(const fs::path& root) {
  std::ifstream statm(root / "proc/self/statm");
  double total_pages = 0.0;
  double resident_pages = 0.0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Linux 6.2 says it as the folder's size; before, the entries are counted.
double open_files(const fs::path& root) {
  const fs::path folder = root / "proc/self/fd";
  struct stat entry {};
  if (stat(folder.c_str(), &entry) == 0 && entry.st_size > 0) return static_cast<double>(entry.st_size);
  std::error_code ignored;
  return static_cast<double>(std::distance(fs::directory_iterator(folder, ignored), fs::directory_iterator()));
}

// The first number of a file; "max" and absent files have none.
std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0.0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// The number behind `key` in a file of "key value" lines.
std::optional<double> field_in(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  std::string name;
  double value = 0.0;
  while (in >> name >> value)
    if (name == key) return value;
  return std::nullopt;
}

// "some avg10=0.31 avg60=0.10 avg300=0.02 total=18443" and the same for "full"; percent and microseconds.
std::optional<SystemFigures::Pressure> pressure_of(const fs::path& root, const char* resource) {
  std::ifstream in(root / "proc/pressure" / resource);
  SystemFigures::Pressure pressure{.resource = resource};
  bool found = false;
  for (std::string kind, word; in >> kind;) {
    double& share = kind == "some" ? pressure.some_share : pressure.full_share;
    double& seconds = kind == "some" ? pressure.some_seconds : pressure.full_seconds;
    for (int i = 0; i < 4 && in >> word; ++i) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) return std::nullopt;
      const double value = std::strtod(word.c_str() + equals + 1, nullptr);
      if (word.starts_with("avg10=")) share = value / 100.0;
      if (word.starts_with("total=")) seconds = value * 1e-6;
    }
    found = true;
  }
  return found ? std::optional(pressure) : std::nullopt;
}

// The least limit from `group` up to the hierarchy's mount. Inside a container the group's path may not exist below the mount; its
// levels then have no limit, and the mount itself counts.
template <class Limit>
void tighten(std::optional<double>& least, const fs::path& mount, const std::string& group, Limit limit) {
  fs::path relative = fs::path(group).relative_path();
  while (true) {
    const std::optional<double> found = limit(relative.empty() ? mount : mount / relative);
    if (found) least = std::min(least.value_or(*found), *found);
    if (relative.empty()) return;
    relative = relative.parent_path();
  }
}

// The group's own folder, or the mount where that is not visible.
fs::path folder_of(const fs::path& mount, const std::string& group) {
  const fs::path folder = mount / fs::path(group).relative_path();
  std::error_code ignored;
  return fs::exists(folder, ignored) ? folder : mount;
}

std::optional<double> scaled(std::optional<double> value, double factor) { return value ? std::optional(*value * factor) : std::nullopt; }

std::optional<double> quota(std::optional<double> quota_us, std::optional<double> period_us) {
  return quota_us && *quota_us > 0.0 && period_us && *period_us > 0.0 ? std::optional(*quota_us / *period_us) : std::nullopt;
}

void read_version2(SystemFigures& figures, const fs::path& mount, const std::string& group) {
  const fs::path own = folder_of(mount, group);
  if (const auto bytes = number_in(own / "memory.current")) figures.group_memory_bytes = bytes;
  tighten(figures.group_memory_limit_bytes, mount, group, [](const fs::path& folder) { return number_in(folder / "memory.max"); });
  tighten(figures.group_cpu_limit, mount, group, [](const fs::path& folder) {
    std::ifstream in(folder / "cpu.max");
    double quota_us = 0.0;
    double period_us = 0.0;
    return in >> quota_us >> period_us ? quota(quota_us, period_us) : std::nullopt;
  });
  if (const auto used = field_in(own / "cpu.stat", "usage_usec")) figures.group_cpu_seconds = scaled(used, 1e-6);
  if (const auto lost = field_in(own / "cpu.stat", "throttled_usec")) figures.group_throttled_seconds = scaled(lost, 1e-6);
}

// Version 1 writes "no limit" as the largest multiple of a page.
std::optional<double> memory_limit_v1(const fs::path& folder) {
  const std::optional<double> limit = number_in(folder / "memory.limit_in_bytes");
  return limit && *limit < 9.2e18 ? limit : std::nullopt;
}

void read_version1(SystemFigures& figures, const fs::path& mount, std::string_view controller, const std::string& group) {
  const fs::path own = folder_of(mount, group);
  if (controller == "memory") {
    figures.group_memory_bytes = number_in(own / "memory.usage_in_bytes");
    tighten(figures.group_memory_limit_bytes, mount, group, memory_limit_v1);
  } else if (controller == "cpu") {
    tighten(figures.group_cpu_limit, mount, group,
            [](const fs::path& folder) { return quota(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us")); });
    figures.group_throttled_seconds = scaled(field_in(own / "cpu.stat", "throttled_time"), 1e-9);
  } else if (controller == "cpuacct") {
    figures.group_cpu_seconds = scaled(number_in(own / "cpuacct.usage"), 1e-9);
  }
}

// proc/self/cgroup has "0::/path" for version 2 and "7:cpu,cpuacct:/path" for version 1.
void read_groups(SystemFigures& figures, const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) read_version2(figures, mounts, group);
    for (std::size_t begin = 0; begin < controllers.size();) {
      const std::size_t end = std::min(controllers.find(',', begin), controllers.size());
      const std::string controller = controllers.substr(begin, end - begin);
      std::error_code ignored;
      const fs::path own_mount = mounts / controller;
      read_version1(figures, fs::exists(own_mount, ignored) ? own_mount : mounts / controllers, controller, group);
      begin = end + 1;
    }
  }
}

}  // namespace

SystemFigures read_system_figures(const char* root) {
  SystemFigures figures;
  figures.resident_bytes = resident_bytes(root);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  figures.cpu_user_seconds = seconds_of(usage.ru_utime);
  figures.cpu_system_seconds = seconds_of(usage.ru_stime);
  figures.open_files = open_files(root);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) figures.max_files = static_cast<double>(files.rlim_cur);
  for (const char* resource : {"cpu", "memory", "io"})
    if (const auto pressure = pressure_of(root, resource)) figures.pressure.push_back(*pressure);
  read_groups(figures, root);
  return figures;
}

const SystemFigures& SystemSample::take() {
  const auto now = std::chrono::steady_clock::now();
  if (taken_ == std::chrono::steady_clock::time_point::min() || now - taken_ >= std::chrono::seconds(1)) {
    figures_ = read_system_figures();
    taken_ = now;
  }
  return figures_;
}

}  // namespace braid::net
