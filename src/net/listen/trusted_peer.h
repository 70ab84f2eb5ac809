// Who is at the other end of a Unix socket.
#pragma once

#include <sys/types.h>
#include <vector>

namespace braid::net {

// Whether that process has this one's user id or one of `users` (SO_PEERCRED).
bool is_trusted_peer(int connection, const std::vector<uid_t>& users = {});

}  // namespace braid::net
