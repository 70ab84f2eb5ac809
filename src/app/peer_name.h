// How a server beside this one (--peers) is named: HOST[:PORT] or http[s]://HOST[:PORT].
#pragma once

#include <string>

namespace braid::app {

struct NamedPeer {
  std::string scheme;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
};

NamedPeer named_peer(const std::string& text);

// Why one cannot be named so; empty: it can.
std::string peer_fault(const std::string& text);

}  // namespace braid::app
