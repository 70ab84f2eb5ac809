#include "net/docs/documents.h"

#include <string>

// Defined in documents.S.
extern "C" {
[[gnu::visibility("hidden")]] extern const char braid_openapi[];
[[gnu::visibility("hidden")]] extern const char braid_openapi_end[];
}

namespace braid::net::docs {

http::Response openapi() {
  http::Response response;
  response.content_type = "application/json";
  response.body.assign(braid_openapi, braid_openapi_end);
  return response;
}

}  // namespace braid::net::docs
