// GET /api/tags and /api/version, POST /api/show.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/http/response.h"

#include <string>

namespace braid::net::ollama {

// What is served; of a model only what is known here.
http::Response tags(const ServiceStatus& status);

// Of the API that this dialect follows: clients compare it with the one that brought what they need.
http::Response version();

// {"model":…} → its details, its template and what it can do. A text job.
Result<std::string> show(Value& body, const ServedModel& model);

}  // namespace braid::net::ollama
