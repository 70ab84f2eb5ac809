// Whose requests they are when proxies stand in front: what X-Forwarded-For says, as far as it can be believed.
#pragma once

#include "braid/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Immutable; any thread.
class TrustedProxies {
 public:
  TrustedProxies() = default;  // none

  // "10.0.0.0/8", "2001:db8::/32", an address, or "unix" for those that come by the Unix socket.
  static Result<TrustedProxies> parse(const std::vector<std::string>& words);

  bool empty() const { return networks_.empty() && !unix_; }

  // The client of a request from `peer` ("192.0.2.1:4711", "[::1]:4711", "unix"). Each proxy appends whom it has the request from, so this
  // is the last address of `forwarded_for` that is none of theirs, or the first one where all are; whatever stands before it, or before
  // something that is no address, anybody may have written. Of a peer that is not trusted, and where there is no address, the peer's own.
  std::string client(std::string_view peer, std::string_view forwarded_for) const;

 private:
  using Address = std::array<std::uint8_t, 16>;  // of IPv4 the mapped one, ::ffff:192.0.2.1
  struct Network {
    Address address;
    int bits = 128;
  };

  bool is_trusted(const Address& address) const;

  std::vector<Network> networks_;
  bool unix_ = false;
};

}  // namespace braid::net
