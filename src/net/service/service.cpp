#include "net/service/service.h"

#include "braid/adapted_name.h"
#include "braid/model_host.h"

#include <fmt/format.h>
#include <optional>
#include <vector>

namespace braid::net {

std::string Service::new_id(std::string_view prefix) {
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  return fmt::format("{}{:016x}{:08x}", prefix, high, low >> 32U);
}

Result<const ModelDirectory*> served_models(const ServiceStatus& status) {
  if (status.state == ServiceState::kDraining) return Error{ErrorCode::kDraining, "the server is shutting down", ""};
  if (!status.models.empty()) return &status.models;
  if (status.state == ServiceState::kLoading) return Error{ErrorCode::kModelNotLoaded, "the model is still being loaded", ""};
  if (status.state == ServiceState::kFailed) return Error{ErrorCode::kModelNotLoaded, "the model could not be loaded", ""};
  if (!status.models.networks().empty())
    return Error{ErrorCode::kModelNotLoaded, "this server has networks only, which /v1/predict asks; no model that generates text", ""};
  if (status.host != nullptr && !status.host->empty()) return Error{ErrorCode::kModelNotLoaded, "no model is loaded", ""};
  return Error{ErrorCode::kModelNotLoaded, "this server runs without a model", ""};
}

Result<const ServedModel*> find_model(const ModelDirectory& models, std::string_view name) {
  if (const ServedModel* model = models.find(name)) return model;
  if (models.find_network(name) != nullptr)
    return invalid_argument(fmt::format("'{}' is a network, which /v1/predict asks; it generates no text", name), "model");
  std::vector<std::string_view> ids;
  for (const ServedModel* model : models.all()) ids.push_back(model->id);
  return Error{ErrorCode::kNotFound, fmt::format("the model '{}' does not exist; this server has '{}'", name, fmt::join(ids, "', '")),
               "model"};
}

Result<const ServedModel*> served_model(const ServiceStatus& status, std::string_view name) {
  const Result<const ModelDirectory*> models = served_models(status);
  if (!models) return models.error();
  if (const std::optional<AdaptedName> adapted = adapted_name(**models, name)) return adapted->base;
  return find_model(**models, name);
}

}  // namespace braid::net
