// GET /metrics and /v1/metrics.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

namespace braid::net::admin {

// In Prometheus's text format, and as JSON; 404 where the server runs without them.
http::Response metrics_text(Service& service);
http::Response metrics_json(Service& service);

}  // namespace braid::net::admin
