// GET /v1/cache/stats: the KV cache by levels, as JSON.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"

#include <string_view>

namespace braid::net::admin {

// Of the model that the query names, else of the first one; 503 without one.
http::Response cache_stats(const ServiceStatus& status, std::string_view query);

}  // namespace braid::net::admin
