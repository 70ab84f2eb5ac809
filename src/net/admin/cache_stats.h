// GET /v1/cache/stats: the KV cache by levels, as JSON.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"

namespace braid::net::admin {

// 503 without a model.
http::Response cache_stats(const ServiceStatus& status);

}  // namespace braid::net::admin
