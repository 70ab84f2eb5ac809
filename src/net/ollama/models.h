// GET /, /api/ps and /api/version, POST /api/show of a model that is served.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/text_answer.h"
#include "net/http/response.h"

#include <string>

namespace braid::net::ollama {

// What is served is loaded, and stays so.
http::Response running(const ServiceStatus& status);

// By whose words its clients know that somebody speaks this API.
http::Response root();

// Of the API that this dialect follows: clients compare it with the one that brought what they need.
http::Response version();

// {"model":…} → its details, its template and what it can do. A text job.
Result<TextAnswer> show(Value& body, const ServedModel& model);

}  // namespace braid::net::ollama
