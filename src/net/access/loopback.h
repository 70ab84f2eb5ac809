// Names of this machine in the headers of a request.
#pragma once

#include <string_view>

namespace braid::net::access {

// Of a Host header: localhost, 127.x.x.x or [::1], with or without a port.
bool is_loopback_host(std::string_view host);

// Of an Origin header: a scheme and such a host.
bool is_loopback_origin(std::string_view origin);

}  // namespace braid::net::access
