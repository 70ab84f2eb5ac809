// Who may change the server.
#pragma once

#include "braid/result.h"
#include "net/access/account.h"
#include "net/http/connection.h"
#include "net/http/request.h"

namespace braid::net::access {

// kForbidden, with what to do, unless the request comes with an administrator's key, or through the Unix socket, whose peers have been
// checked. On a server without keys also from a loopback address, if its Host and Origin say so too: a page of another site has another
// Origin, and one that has its name point to this machine another Host. `account` is null when no key was right.
Result<void> check_administrator(const Account* account, bool server_has_keys, http::Connection::Place place, const http::Request& request);

}  // namespace braid::net::access
