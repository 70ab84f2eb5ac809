#include "net/admin/prefix_cache.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"

#include <cstdint>
#include <fmt/format.h>

namespace braid::net::admin {

http::Response reset_prefix_cache(const Service& service, std::string& body) {
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return http::error_response(document.error());
  const Result<const ModelDirectory*> models = served_models(service.status);
  if (!models) return http::error_response(models.error());
  std::int64_t blocks = 0;
  for (const ServedModel* model : (*models)->all()) blocks += model->engine->forget_prefixes();
  http::Response response;
  response.body = fmt::format(R"({{"object":"reset_prefix_cache","blocks":{}}})", blocks);
  return response;
}

}  // namespace braid::net::admin
