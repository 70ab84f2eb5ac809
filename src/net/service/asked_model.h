// The model that a request asks for, which may have to be loaded first.
#pragma once

#include "braid/adapters.h"
#include "braid/model_host.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/service/codec_jobs.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

namespace braid::net {

struct AskedModel {
  std::string name;  // empty: any
  std::optional<KeepAlive> keep_alive = {};
  std::vector<AdapterChoice> adapters = {};
  bool is_bare = false;  // the base of what is named, which an update of its weights does not wait for
};

// Which of its members `model` and `model_id` says what `body`, an object, is about; no name: neither. kInvalidArgument: they differ.
struct NamedModel {
  const Value* name = nullptr;
  const char* member = "model";
};
Result<NamedModel> named_model(const Value& body);

// What `body`, an object, names in its members `model` or `model_id`, and in `adapter` and `lora`, which are taken out of it.
Result<AskedModel> asked_model(Value& body);

// Whether this server has, or may get, a model that could answer.
Result<void> check_service(const ServiceStatus& status);

// In use, when it is loaded, with its adapters. A null hold: it has to be waited for. Errors are those of find_model() and Adapters::apply().
Result<ModelHold> take_model(const ServiceStatus& status, const AskedModel& asked);

// After a null hold: waits until it is loaded. kCancelled when it was abandoned before. `status` and `abandonment` outlive the wait.
boost::asio::awaitable<Result<ModelHold>> await_model(const ServiceStatus& status, Abandonment& abandonment, AskedModel asked);

}  // namespace braid::net
