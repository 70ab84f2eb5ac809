#include "registry/nearest_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::size_t kLongestCompared = 200;

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

bool has_tag(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return name.find(':', slash == std::string_view::npos ? 0 : slash) != std::string_view::npos;
}

template <class Matches>
std::vector<std::string> those(std::span<const std::string> names, Matches matches) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (matches(lower(name))) found.push_back(name);
  return found;
}

// Letters to be added, left out or changed.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> names_meant(std::string_view asked, std::span<const std::string> names) {
  const std::string small = lower(asked);
  if (small.empty()) return {};
  const bool tagged = has_tag(small);
  std::vector<std::string> found =
      those(names, [&](const std::string& name) { return name == small || (!tagged && name == small + ":latest"); });
  if (found.empty() && !tagged) found = those(names, [&](const std::string& name) { return name.starts_with(small + ":"); });
  if (found.empty()) found = those(names, [&](const std::string& name) { return name.starts_with(small); });
  return found;
}

std::vector<std::string> nearest_names(std::string_view asked, std::span<const std::string> names, std::size_t most) {
  const std::string small = lower(asked.substr(0, kLongestCompared));
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : names) {
    std::string bare = lower(std::string_view(name).substr(0, kLongestCompared));
    if (!has_tag(small)) bare = bare.substr(0, bare.rfind(':'));
    const bool holds = bare.find(small) != std::string::npos;
    const std::size_t far = holds ? 0 : distance(small, bare);
    if (far <= std::max(small.size(), bare.size()) / 2) ranked.emplace_back(far, name);
  }
  std::ranges::sort(ranked);
  std::vector<std::string> nearest;
  for (auto& [far, name] : ranked)
    if (nearest.size() < most) nearest.push_back(std::move(name));
  return nearest;
}

}  // namespace braid::registry
