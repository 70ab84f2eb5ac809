#include "net/docs/documents.h"

#include <string>
#include <string_view>

// Defined in documents.S.
extern "C" {
[[gnu::visibility("hidden")]] extern const char braid_openapi[];
[[gnu::visibility("hidden")]] extern const char braid_openapi_end[];
[[gnu::visibility("hidden")]] extern const char braid_docs_page[];
[[gnu::visibility("hidden")]] extern const char braid_docs_page_end[];
}

namespace braid::net::docs {
namespace {

http::Response document(const char* begin, const char* end, std::string_view type) {
  http::Response response;
  response.content_type = type;
  response.body.assign(begin, end);
  return response;
}

}  // namespace

http::Response openapi() { return document(braid_openapi, braid_openapi_end, "application/json"); }

http::Response page() { return document(braid_docs_page, braid_docs_page_end, "text/html; charset=utf-8"); }

}  // namespace braid::net::docs
