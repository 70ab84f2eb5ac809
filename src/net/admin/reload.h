// POST /v1/admin/reload and POST /reload: options, and files that they name, are read again, as on SIGHUP.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <string>

namespace braid::net::admin {

// {"object":"reload","api_keys":…,"changed":[…],"waiting":[…]}; 404 where there is nothing to be read again. The body is empty or any object.
http::Response reload(const Service& service, std::string& body);

}  // namespace braid::net::admin
