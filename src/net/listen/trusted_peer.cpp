#include "net/listen/trusted_peer.h"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>

namespace braid::net {

bool is_trusted_peer(int connection, const std::vector<uid_t>& users) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || std::find(users.begin(), users.end(), peer.uid) != users.end();
}

}  // namespace braid::net
