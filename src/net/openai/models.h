// GET /v1/models and /v1/models/{id}.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"

#include <string>

namespace braid::net::openai {

http::Response list_models(const ServiceStatus& status);
http::Response show_model(const ServiceStatus& status, const std::string& id);

}  // namespace braid::net::openai
