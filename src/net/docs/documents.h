// GET /openapi.json and /docs, which shows it.
#pragma once

#include "net/http/response.h"

namespace braid::net::docs {

http::Response openapi();
http::Response page();

}  // namespace braid::net::docs
