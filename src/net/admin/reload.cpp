#include "net/admin/reload.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"

#include <cstddef>
#include <fmt/format.h>

namespace braid::net::admin {

http::Response reload(const Service& service, std::string& body) {
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return http::error_response(document.error());
  if (!service.options.reload) return http::error_response({ErrorCode::kNotFound, "this server has nothing that could be read again", ""});
  const Result<std::size_t> keys = service.options.reload();
  if (!keys) return http::error_response(keys.error());
  http::Response response;
  response.body = fmt::format(R"({{"object":"reload","api_keys":{}}})", *keys);
  return response;
}

}  // namespace braid::net::admin
