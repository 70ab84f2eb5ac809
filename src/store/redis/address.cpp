#include "store/redis/address.h"

#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace braid::store {
namespace {

template <class Number>
bool read_number(std::string_view text, Number most, Number& value) {
  Number read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc() || end != text.data() + text.size() || read > most) return false;
  value = read;
  return true;
}

// nullopt: a percent sign is not followed by two digits.
std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    plain += static_cast<char>(value);
    at += 2;
  }
  return plain;
}

Error fault(std::string_view what) {
  return invalid_argument(
      fmt::format("{}: write redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] or unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]", what));
}

Result<void> read_user(std::string_view text, RedisAddress& address) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return fault("before the @ there is no colon and no password");
  const std::optional<std::string> user = decoded(text.substr(0, colon));
  const std::optional<std::string> password = decoded(text.substr(colon + 1));
  if (!user || !password) return fault("user or password has a % without two hexadecimal digits");
  if (password->empty()) return fault("the password is empty");
  address.user = *user;
  address.password = *password;
  return {};
}

Result<void> read_database(std::string_view text, RedisAddress& address) {
  if (!text.empty() && !read_number<std::uint32_t>(text, 65535, address.database)) return fault("the database is no number");
  return {};
}

Result<void> read_host(std::string_view text, RedisAddress& address) {
  std::size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) return fault("an IPv6 address lacks its ]");
    address.host = text.substr(1, end - 1);
    ++end;
  } else {
    address.host = text.substr(0, end);
  }
  if (address.host.empty()) return fault("there is no host");
  if (end >= text.size()) return {};
  if (text[end] != ':' || !read_number<std::uint16_t>(text.substr(end + 1), 65535, address.port) || address.port == 0)
    return fault("the port is no number from 1 to 65535");
  return {};
}

Result<void> read_socket(std::string_view text, RedisAddress& address) {
  constexpr std::string_view kDatabase = "?db=";
  const std::size_t query = text.find('?');
  const std::optional<std::string> path = decoded(text.substr(0, query));
  if (!path || !path->starts_with('/') || path->find('\0') != std::string::npos) return fault("the path of a socket begins with /");
  address.socket = *path;
  if (query == std::string_view::npos) return {};
  if (!text.substr(query).starts_with(kDatabase)) return fault("behind the ? only db=DATABASE is known");
  return read_database(text.substr(query + kDatabase.size()), address);
}

}  // namespace

std::string RedisAddress::name() const {
  if (!socket.empty()) return fmt::format("{}{}", socket, database > 0 ? fmt::format("?db={}", database) : "");
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port, database > 0 ? fmt::format("/{}", database) : "");
}

Result<RedisAddress> parse_redis_url(std::string_view url) {
  constexpr std::string_view kTcp = "redis://";
  constexpr std::string_view kUnix = "unix://";
  if (url.starts_with("rediss://")) return fault("TLS is not spoken: put a tunnel such as stunnel in between");
  const bool is_tcp = url.starts_with(kTcp);
  if (!is_tcp && !url.starts_with(kUnix)) return fault("this is no address of a Redis");
  std::string_view rest = url.substr(is_tcp ? kTcp.size() : kUnix.size());
  RedisAddress address;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (const Result<void> user = read_user(rest.substr(0, at), address); !user) return user.error();
    rest.remove_prefix(at + 1);
  }
  Result<void> read;
  if (is_tcp) {
    const std::size_t slash = rest.find('/');
    read = read_host(rest.substr(0, slash), address);
    if (read && slash != std::string_view::npos) read = read_database(rest.substr(slash + 1), address);
  } else {
    read = read_socket(rest, address);
  }
  if (!read) return read.error();
  return address;
}

}  // namespace braid::store
