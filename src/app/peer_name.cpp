#include "app/peer_name.h"

#include <algorithm>

namespace braid::app {

NamedPeer named_peer(const std::string& text) {
  const std::size_t mark = text.find("://");
  NamedPeer peer{mark == std::string::npos ? "http" : text.substr(0, mark), text.substr(mark == std::string::npos ? 0 : mark + 3), "8000"};
  std::string& host = peer.host;
  if (host.starts_with('[')) {
    const std::size_t end = std::min(host.find(']'), host.size());
    if (end + 1 < host.size() && host[end + 1] == ':') peer.port = host.substr(end + 2);
    host = host.substr(1, end - 1);
  } else if (const std::size_t colon = host.rfind(':'); colon != std::string::npos) {
    peer.port = host.substr(colon + 1);
    host.resize(colon);
  }
  return peer;
}

std::string peer_fault(const std::string& text) {
  const std::string fault = "'" + text + "' is no HOST:PORT, http://HOST:PORT or https://HOST:PORT";
  const NamedPeer peer = named_peer(text);
  if (peer.scheme != "http" && peer.scheme != "https") return fault;
  const bool is_number =
      !peer.port.empty() && peer.port.size() <= 5 && std::ranges::all_of(peer.port, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || std::stoi(peer.port) < 1 || std::stoi(peer.port) > 65535) return fault;
  return peer.host.empty() || peer.host.find_first_of("/?#@ ") != std::string::npos ? fault : "";
}

}  // namespace braid::app
