#include "net/admin/reload.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"
#include "net/json/write.h"

#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <vector>

namespace braid::net::admin {
namespace {

void append_names(std::string& out, std::string_view member, const std::vector<std::string>& names) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":[)", member);
  for (const std::string& name : names) {
    if (&name != &names.front()) out += ',';
    json::append_string(out, name);
  }
  out += ']';
}

}  // namespace

http::Response reload(const Service& service, std::string& body) {
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return http::error_response(document.error());
  if (!service.options.reload) return http::error_response({ErrorCode::kNotFound, "this server has nothing that could be read again", ""});
  const Result<Reloaded> again = service.options.reload();
  if (!again) return http::error_response(again.error());
  http::Response response;
  response.body = fmt::format(R"({{"object":"reload","api_keys":{})", again->api_keys);
  append_names(response.body, "changed", again->changed);
  append_names(response.body, "waiting", again->waiting);
  response.body += '}';
  return response;
}

}  // namespace braid::net::admin
