#include "kernels/memory_nodes.h"

#include "kernels/thread_team.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sched.h>
#include <string_view>
#include <system_error>
#include <utility>

namespace braid::kernels {
namespace {

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Of "0-3,8": those of `allowed`. What cannot be read is left out.
std::vector<int> listed(std::string_view list, const std::vector<int>& allowed) {
  std::vector<std::pair<int, int>> ranges;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, comma);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const auto first = number_in(range.substr(0, dash));
    const auto last = dash < range.size() ? number_in(range.substr(dash + 1)) : first;
    if (first && last) ranges.emplace_back(*first, *last);
    list.remove_prefix(std::min(list.size(), comma + 1));
  }
  std::vector<int> cpus;
  std::ranges::copy_if(allowed, std::back_inserter(cpus), [&](int cpu) {
    return std::ranges::any_of(ranges, [cpu](const auto& range) { return cpu >= range.first && cpu <= range.second; });
  });
  return cpus;
}

}  // namespace

std::vector<std::vector<int>> memory_nodes(const std::string& root) {
  namespace fs = std::filesystem;
  const std::vector<int> allowed = allowed_cpus();
  std::map<int, std::vector<int>> nodes;
  std::error_code error;
  for (fs::directory_iterator entry(fs::path(root) / "sys/devices/system/node", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const auto number = name.starts_with("node") ? number_in(std::string_view(name).substr(4)) : std::nullopt;
    if (!number) continue;
    std::ifstream file(entry->path() / "cpulist");
    std::string list;
    std::getline(file, list);
    if (std::vector<int> cpus = listed(list, allowed); !cpus.empty()) nodes.emplace(*number, std::move(cpus));
  }
  std::vector<std::vector<int>> found;
  for (auto& [number, cpus] : nodes) found.push_back(std::move(cpus));
  if (found.empty()) found.push_back(allowed);
  return found;
}

void stay_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(std::ranges::max(cpus)) / CPU_SETSIZE + 1);
  const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
  CPU_ZERO_S(bytes, sets.data());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, sets.data());
  (void)sched_setaffinity(0, bytes, sets.data());
}

}  // namespace braid::kernels
