// POST /v1/responses/{id}/cancel.
#pragma once

#include "net/http/response.h"
#include "net/responses/running.h"
#include "net/responses/store.h"

#include <functional>
#include <string>
#include <string_view>

namespace braid::net::responses {

// Ends a generation of the client's by its id. False when it has just ended by itself.
using Stop = std::function<bool(const std::string& id)>;

// `path` is what follows /responses/; the body says nothing. Answers with the response as far as it has come, cancelled; one that was cancelled before is told
// again. 404 when it is unknown or another client's, 400 when it has come to its end, or the body is no object.
http::Response cancel(const Shelf& stored, const RunningResponses& running, std::string_view path, std::string& body, const Stop& stop);

}  // namespace braid::net::responses
