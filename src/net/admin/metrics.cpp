#include "net/admin/metrics.h"

#include "net/http/error_response.h"
#include "net/metrics/exposition.h"
#include "net/metrics/other_names.h"

#include <ctime>
#include <fmt/format.h>

namespace braid::net::admin {
namespace {

http::Response no_metrics() { return http::error_response({ErrorCode::kNotFound, "this server runs with --metrics off", ""}); }

FamilyList gather(Service& service) {
  FamilyList families = gather_metrics(service.counters, *service.connections, service.status, service.system.take());
  const ServedModel* model = service.status.models.find({});
  if (model == nullptr) return families;
  if (service.options.vllm_metrics) add_vllm_names(families, service.counters, service.status.models);
  if (service.options.llamacpp_metrics) add_llamacpp_names(families, service.counters, model->engine->stats());
  return families;
}

}  // namespace

http::Response metrics_text(Service& service) {
  if (!service.options.metrics) return no_metrics();
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = gather(service).text();
  return response;
}

http::Response metrics_json(Service& service) {
  if (!service.options.metrics) return no_metrics();
  http::Response response;
  response.body = fmt::format(R"({{"object":"metrics","created":{},"metrics":{}}})", std::time(nullptr), gather(service).json());
  return response;
}

}  // namespace braid::net::admin
