#include "net/service/asked_model.h"

#include "net/json/fields.h"

#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

Result<AskedModel> asked_model(const Value& body) {
  const Value* name = body.find("model");
  if (name == nullptr || name->is_null()) return AskedModel{};
  Result<std::string> text = json::read_string(*name, "model");
  if (!text) return text.error();
  return AskedModel{std::move(*text)};
}

Result<void> check_service(const ServiceStatus& status) {
  const bool may_load = status.host != nullptr && status.state != ServiceState::kLoading && status.state != ServiceState::kDraining &&
                        status.state != ServiceState::kFailed && status.state != ServiceState::kNoModel;
  if (may_load) return {};
  const Result<const ModelDirectory*> models = served_models(status);
  if (!models) return models.error();
  return {};
}

Result<ModelHold> take_model(const ServiceStatus& status, const AskedModel& asked) {
  if (status.host == nullptr || status.models.find_network(asked.name) != nullptr) {
    const Result<const ServedModel*> found = find_model(status.models, asked.name);
    if (!found) return found.error();
    return ModelHold(ModelHold(), *found);  // it outlives all that use it
  }
  return status.host->take(asked.name, asked.keep_alive);
}

asio::awaitable<Result<ModelHold>> await_model(const ServiceStatus& status, Abandonment& abandonment, AskedModel asked) {
  const std::shared_ptr<ModelWait> wait = status.host->ask(std::move(asked.name), asked.keep_alive);
  const Abandonment::Wait waits(abandonment, wait->arrived);
  while (!wait->result) {
    if (abandonment.is_abandoned()) co_return Error{ErrorCode::kCancelled, "nobody waits for the model any more", ""};
    co_await wait->arrived.wait();
  }
  co_return std::move(*wait->result);
}

}  // namespace braid::net
