#include "net/access/administrator.h"

#include "net/access/loopback.h"

namespace braid::net::access {

Result<void> check_administrator(const Account* account, bool server_has_keys, http::Connection::Place place,
                                 const http::Request& request) {
  using Place = http::Connection::Place;
  if (place == Place::kUnixSocket || (account != nullptr && account->rules().is_administrator)) return {};
  if (server_has_keys)
    return Error{ErrorCode::kForbidden,
                 "this route is an administrator's: it wants a key with the setting administrator, or the Unix socket", ""};
  const bool is_local_page = request.origin.empty() || is_loopback_origin(request.origin);
  if (place == Place::kLoopback && is_loopback_host(request.host) && is_local_page) return {};
  return Error{ErrorCode::kForbidden,
               "this route is an administrator's: without API keys only programs and pages of this machine may call it, or give a key the "
               "setting administrator",
               ""};
}

}  // namespace braid::net::access
