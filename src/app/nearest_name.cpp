#include "app/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid::app {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0U : 1U)}));
  }
  return row.back();
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& names, std::size_t most) {
  std::string nearest;
  std::size_t least = most + 1;
  for (const std::string& other : names) {
    const std::size_t steps = edit_distance(name, other);
    if (steps >= least) continue;
    least = steps;
    nearest = other;
  }
  return nearest;
}

}  // namespace braid::app
