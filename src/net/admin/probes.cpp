#include "net/admin/probes.h"

#include "net/json/write.h"

#include <fmt/format.h>
#include <string_view>

namespace braid::net::admin {
namespace {

std::string_view reason_of(const ServiceStatus& status) {
  if (!status.reason.empty()) return status.reason;
  switch (status.state) {
    case ServiceState::kLoading:
      return "the model is being loaded";
    case ServiceState::kLeaving:
    case ServiceState::kDraining:
      return "the server is shutting down";
    case ServiceState::kFailed:
      return "the model could not be loaded";
    case ServiceState::kLate:
      return "a step takes too long";
    case ServiceState::kReady:
    case ServiceState::kNoModel:
      break;
  }
  return "";
}

http::Response unavailable(std::string_view reason) {
  http::Response response;
  response.status = 503;
  response.body = R"({"status":"unavailable","reasons":[)";
  json::append_lossy_string(response.body, reason);
  response.body += "]}";
  return response;
}

http::Response ready_or_why(const ServiceStatus& status, std::string_view ready) {
  if (status.state != ServiceState::kReady && status.state != ServiceState::kNoModel) return unavailable(reason_of(status));
  http::Response response;
  response.body = ready;
  return response;
}

}  // namespace

http::Response health(const ServiceStatus& status) { return ready_or_why(status, R"({"status":"ok"})"); }

http::Response livez() {
  http::Response response;
  response.body = R"({"status":"ok"})";
  return response;
}

http::Response readyz(const ServiceStatus& status, const Changes* changes) {
  http::Response response = ready_or_why(status, R"({"status":"ready"})");
  if (response.status != 200 || changes == nullptr) return response;
  const std::string lack = changes->lack(status);
  return lack.empty() ? response : unavailable(lack);
}

http::Response load(std::uint64_t requests) {
  http::Response response;
  response.body = fmt::format(R"({{"server_load":{}}})", requests);
  return response;
}

http::Response version(std::string_view version) {
  http::Response response;
  response.body = R"({"version":)";
  json::append_string(response.body, version);
  response.body += '}';
  return response;
}

}  // namespace braid::net::admin
