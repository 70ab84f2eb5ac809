#include "net/access/loopback.h"

#include <arpa/inet.h>
#include <array>
#include <boost/beast/core/string.hpp>
#include <string>

namespace braid::net::access {
namespace {

constexpr unsigned char kLoopbackNet = 127;

// Without its port.
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  const std::string name(name_of(host));
  if (boost::beast::iequals(name, "localhost") || name == "[::1]") return true;
  std::array<unsigned char, 4> address{};
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 && address[0] == kLoopbackNet;
}

bool is_loopback_origin(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && is_loopback_host(origin.substr(scheme + 3));
}

}  // namespace braid::net::access
