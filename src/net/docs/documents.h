// GET /openapi.json.
#pragma once

#include "net/http/response.h"

namespace braid::net::docs {

http::Response openapi();

}  // namespace braid::net::docs
