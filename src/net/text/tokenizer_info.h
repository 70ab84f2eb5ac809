// GET /tokenizer_info, in vLLM's form.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <string_view>

namespace braid::net::text {

// Of the model that the query names, else of the first one.
http::Response tokenizer_info(const ServiceStatus& status, std::string_view query);

}  // namespace braid::net::text
