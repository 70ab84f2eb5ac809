// The web page: GET / for browsers, what shows the API's description, and the files that they consist of at /page/NAME. They are part of
// the binary, and nothing of them comes from anywhere else.
#pragma once

#include "net/http/response.h"

#include <string_view>

namespace braid::net::page {

http::Response index();
http::Response docs();  // GET /docs

// One of the page's files by its name; 404 when it has no such file.
http::Response file(std::string_view name);

}  // namespace braid::net::page
