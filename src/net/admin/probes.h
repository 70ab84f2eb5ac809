// GET /health, /livez and /readyz.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"

namespace braid::net::admin {

http::Response health();  // exactly {"status":"ok"} as long as the loop runs
http::Response livez();

// 200 when a generation would be accepted, and also without a model if that was asked for; 503 with the reason while loading,
// draining, or after a failed load.
http::Response readyz(const ServiceStatus& status);

}  // namespace braid::net::admin
