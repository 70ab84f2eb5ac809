#include "app/host_list.h"

#include "app/whole_file.h"
#include "braid/value.h"
#include "net/json/parse.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

// Nothing that mpirun would take for something else than a machine.
bool is_host(const std::string& name) {
  return !name.empty() && name.front() != '-' &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@'; });
}

constexpr std::size_t kMostHostfileBytes = std::size_t{1} << 20;

Error bad_hosts(const std::string& path, const std::string& what) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, what), {}};
}

}  // namespace

Result<HostList> read_hostfile(const std::string& path) {
  std::optional<std::string> text = read_whole_file(path, kMostHostfileBytes);
  if (!text || text->size() > kMostHostfileBytes) return bad_hosts(path, "the list of machines cannot be read");
  const std::size_t begin = text->find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || (*text)[begin] != '[') return HostList{path, {}};
  const Result<Value> list = net::json::parse(*text);
  if (!list) return bad_hosts(path, list.error().message);
  std::vector<std::pair<std::string, int>> places;  // in the order in which they are named
  for (const Value& item : *list->get_if<ValueList>()) {
    const Value* ssh = item.find("ssh");
    const auto* name = ssh != nullptr ? ssh->get_if<std::string>() : item.get_if<std::string>();
    if (name == nullptr || !is_host(*name)) return bad_hosts(path, R"(expected a list of {"ssh": "NAME OF A MACHINE"})");
    auto known = std::ranges::find(places, *name, &std::pair<std::string, int>::first);
    if (known == places.end()) known = places.insert(known, {*name, 0});
    ++known->second;
  }
  if (places.empty()) return bad_hosts(path, "no machine is named");
  HostList hosts;
  for (const auto& [name, count] : places) hosts.hosts += fmt::format("{}{}:{}", hosts.hosts.empty() ? "" : ",", name, count);
  return hosts;
}

}  // namespace braid::app
