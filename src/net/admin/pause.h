// What stops the work of all clients: an administrator's.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <string>
#include <string_view>

namespace braid::net::admin {

// POST /pause: no step begins until POST /resume. What runs keeps its place, and with "mode=abort" it is ended. What comes meanwhile waits.
http::Response pause(Service& service, std::string_view query, std::string& body);
http::Response resume(Service& service, std::string& body);
http::Response is_paused(const ServiceStatus& status);

// POST /abort_requests: the answers and predictions of any clients with these ids, or all that run.
http::Response abort_requests(Service& service, std::string& body);

}  // namespace braid::net::admin
