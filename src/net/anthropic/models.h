// GET /v1/models and /v1/models/{id} for who speaks Anthropic's API.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"

#include <string_view>

namespace braid::net::anthropic {

// The query's limit, after_id and before_id choose a page.
http::Response list_models(const ServiceStatus& status, std::string_view query);
http::Response show_model(const ServiceStatus& status, std::string_view id);

}  // namespace braid::net::anthropic
