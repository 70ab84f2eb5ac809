// Names from a request, in one header of its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// `name` in ASCII: what is not printable, a comma or a percent sign is escaped like in a URL.
std::string header_name(std::string_view name);

// "a, b, c"; ends with "..." where clients begin to refuse headers that are longer.
template <class Names>
std::string name_list(const Names& names) {
  constexpr std::size_t kMostBytes = 1024;
  std::string list;
  for (const auto& name : names) {
    const std::string next = (list.empty() ? "" : ", ") + header_name(name);
    if (list.size() + next.size() > kMostBytes) return list + (list.empty() ? "..." : ", ...");
    list += next;
  }
  return list;
}

// The same of each name once, in order.
std::string sorted_name_list(const std::vector<std::string>& names);

}  // namespace braid::net
