#include "app/bench/target.h"

#include <algorithm>

namespace braid::bench {

Result<Target> parse_target(std::string_view base_url) {
  constexpr std::string_view kScheme = "http://";
  if (base_url.substr(0, kScheme.size()) != kScheme) return invalid_argument("the base URL must start with http://", "base-url");
  base_url.remove_prefix(kScheme.size());
  const auto slash = std::min(base_url.find('/'), base_url.size());
  std::string_view authority = base_url.substr(0, slash);
  Target target;
  target.path = std::string(base_url.substr(slash));
  while (!target.path.empty() && target.path.back() == '/') target.path.pop_back();
  if (target.path.size() < 3 || target.path.substr(target.path.size() - 3) != "/v1") target.path += "/v1";
  const auto bracket = authority.find(']');
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  target.port = colon == std::string_view::npos ? "80" : std::string(authority.substr(colon + 1));
  target.host = std::string(authority.substr(0, colon));
  if (bracket != std::string_view::npos) target.host = std::string(authority.substr(1, bracket - 1));
  const bool digits = std::all_of(target.port.begin(), target.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (target.host.empty() || target.port.empty() || !digits) return invalid_argument("the base URL needs a host and a port", "base-url");
  return target;
}

}  // namespace braid::bench
