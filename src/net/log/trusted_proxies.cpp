#include "net/log/trusted_proxies.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace braid::net {
namespace {

using Address = std::array<std::uint8_t, 16>;

constexpr std::string_view kUnix = "unix";
constexpr std::size_t kMappedBytes = 12;  // before the four of an IPv4 address

std::optional<Address> parse_address(const std::string& text) {
  Address address{};
  if (::inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  address = {};
  address[10] = address[11] = 0xFF;
  if (::inet_pton(AF_INET, text.c_str(), address.data() + kMappedBytes) == 1) return address;
  return std::nullopt;
}

// "192.0.2.1", "192.0.2.1:80", "::1", "[::1]" and "[::1]:80" without blanks, brackets and port.
std::string bare(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  if (text.front() == '[') return std::string(text.substr(1, std::min(text.find(']'), text.size()) - 1));
  const std::size_t colon = text.find(':');
  const bool is_port = colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos;
  return std::string(is_port ? text.substr(0, colon) : text);
}

bool begins_alike(const Address& a, const Address& b, int bits) {
  const auto bytes = static_cast<std::size_t>(bits) / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(bytes), b.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::parse(const std::vector<std::string>& words) {
  TrustedProxies proxies;
  for (const std::string& word : words) {
    if (word == kUnix) {
      proxies.unix_ = true;
      continue;
    }
    const std::size_t slash = word.find('/');
    const std::optional<Address> address = parse_address(word.substr(0, slash));
    const bool is_v6 = word.find(':') != std::string::npos;
    const int most = is_v6 ? 128 : 32;
    int bits = most;
    bool is_number = true;
    if (slash != std::string::npos) {
      const auto [end, error] = std::from_chars(word.data() + slash + 1, word.data() + word.size(), bits);
      is_number = error == std::errc{} && end == word.data() + word.size();
    }
    if (!address || !is_number || bits < 0 || bits > most)
      return invalid_argument(fmt::format("'{}' is no network: write 10.0.0.0/8, 2001:db8::/32, an address or unix", word));
    proxies.networks_.push_back({*address, is_v6 ? bits : bits + 8 * static_cast<int>(kMappedBytes)});
  }
  return proxies;
}

bool TrustedProxies::is_trusted(const Address& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) { return begins_alike(address, network.address, network.bits); });
}

std::string TrustedProxies::client(std::string_view peer, std::string_view forwarded_for) const {
  const std::string own = peer == kUnix ? std::string(kUnix) : bare(peer);
  const std::optional<Address> from = parse_address(own);
  if (!(peer == kUnix ? unix_ : from && is_trusted(*from))) return own;
  std::string client = own;
  while (!forwarded_for.empty()) {
    const std::size_t comma = forwarded_for.rfind(',');
    std::string last = bare(forwarded_for.substr(comma == std::string_view::npos ? 0 : comma + 1));
    const std::optional<Address> address = parse_address(last);
    if (!address) break;
    client = std::move(last);
    if (!is_trusted(*address) || comma == std::string_view::npos) break;
    forwarded_for = forwarded_for.substr(0, comma);
  }
  return client;
}

}  // namespace braid::net
