// GET and DELETE of /v1/responses/{id}, and GET of /v1/responses/{id}/input_items.
#pragma once

#include "net/http/response.h"
#include "net/responses/store.h"

#include <string_view>

namespace braid::net::responses {

// `path` is what follows /responses/. 404 when the response is unknown, no longer kept, or another client's; 400 for a parameter of the
// query that cannot be honoured.
http::Response show(const Shelf& stored, std::string_view path, std::string_view query);
http::Response erase(const Shelf& stored, std::string_view path);

}  // namespace braid::net::responses
