#include "net/service/service.h"

#include <fmt/format.h>

namespace braid::net {

std::string Service::new_id(std::string_view prefix) {
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  return fmt::format("{}-{:016x}{:08x}", prefix, high, low >> 32U);
}

Result<const ServedModel*> served_model(const ServiceStatus& status) {
  if (status.state == ServiceState::kDraining) return Error{ErrorCode::kDraining, "the server is shutting down", ""};
  if (status.model != nullptr) return status.model;
  if (status.state == ServiceState::kLoading) return Error{ErrorCode::kModelNotLoaded, "the model is still being loaded", ""};
  if (status.state == ServiceState::kFailed) return Error{ErrorCode::kModelNotLoaded, "the model could not be loaded", ""};
  return Error{ErrorCode::kModelNotLoaded, "this server runs without a model", ""};
}

}  // namespace braid::net
