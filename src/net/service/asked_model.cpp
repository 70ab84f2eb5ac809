#include "net/service/asked_model.h"

#include "braid/adapted_name.h"
#include "net/json/fields.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

namespace {

constexpr float kMostScale = 1e4F;

// A name, or an object with a scale beside it; `key` is what tells which one it is.
Result<AdapterChoice> read_choice(const Value& value, const std::string& path, std::string_view key) {
  if (value.get_if<std::string>() != nullptr) return AdapterChoice{*value.get_if<std::string>()};
  const Value* which = value.find(key);
  if (which == nullptr) return json::wrong_type(path, fmt::format("a name or an object with '{}'", key), value);
  AdapterChoice choice;
  if (key == "id") {
    const Result<std::int64_t> number = json::read_integer(*which, json::at_key(path, key), 0, std::numeric_limits<std::int32_t>::max());
    if (!number) return number.error();
    choice.number = static_cast<std::uint32_t>(*number);
  } else {
    Result<std::string> name = json::read_string(*which, json::at_key(path, key));
    if (!name) return name.error();
    choice.name = std::move(*name);
  }
  if (const Value* scale = value.find("scale"); scale != nullptr && !scale->is_null()) {
    const Result<float> number = json::read_number(*scale, json::at_key(path, "scale"), -kMostScale, kMostScale);
    if (!number) return number.error();
    choice.scale = *number;
  }
  return choice;
}

Result<void> read_choices(const Value& value, const std::string& path, std::string_view key, std::vector<AdapterChoice>& choices) {
  if (value.is_null()) return {};
  const auto* list = value.get_if<ValueList>();
  const std::size_t count = list != nullptr ? list->size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    Result<AdapterChoice> choice = read_choice(list != nullptr ? (*list)[i] : value, list != nullptr ? json::at_index(path, i) : path, key);
    if (!choice) return choice.error();
    choices.push_back(std::move(*choice));
  }
  return {};
}

Result<ModelHold> without_adapters(ModelHold base, std::span<const AdapterChoice> choices) {
  for (const AdapterChoice& choice : choices)
    if (!base->adapters->has(choice.name))
      return Error{ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", choice.name), "adapter"};
  return base;
}

// What a base is with the adapters that are asked for, and with none: the revision of its weights that is current now.
Result<ModelHold> with_adapters(ModelHold base, std::span<const AdapterChoice> choices, bool is_bare) {
  if (base->adapters != nullptr) {
    if (is_bare) return without_adapters(std::move(base), choices);
    Adapters& adapters = *base->adapters;
    return adapters.apply(std::move(base), choices);
  }
  if (choices.empty()) return base;
  return invalid_argument(fmt::format("the model '{}' takes no adapters", base->id), "adapter");
}

}  // namespace

Result<NamedModel> named_model(const Value& body) {
  NamedModel named;
  for (const char* member : {"model", "model_id"}) {
    const Value* name = body.find(member);
    if (name == nullptr || name->is_null()) continue;
    const Result<std::string> text = json::read_string(*name, member);
    if (!text) return text.error();
    if (named.name != nullptr && *named.name != *name)
      return invalid_argument(fmt::format("'model' and 'model_id' are both there, and '{}' is another name: which one?", *text), member);
    if (named.name == nullptr) named = {name, member};
  }
  return named;
}

Result<AskedModel> asked_model(Value& body) {
  AskedModel asked;
  const Result<NamedModel> named = named_model(body);
  if (!named) return named.error();
  if (named->name != nullptr) asked.name = *named->name->get_if<std::string>();
  for (const auto& [member, key] : {std::pair<std::string, std::string_view>{"adapter", "name"}, {"lora", "id"}}) {
    const Value* value = body.find(member);
    if (value == nullptr) continue;
    const Result<void> read = read_choices(*value, member, key, asked.adapters);
    if (!read) return read.error();
    std::erase_if(*body.get_if<ValueDict>(), [&name = member](const auto& field) { return field.first == name; });
  }
  return asked;
}

Result<void> check_service(const ServiceStatus& status) {
  const bool may_load = status.host != nullptr && status.state != ServiceState::kLoading && status.state != ServiceState::kDraining &&
                        status.state != ServiceState::kFailed && status.state != ServiceState::kNoModel && !status.host->empty();
  if (may_load) return {};
  const Result<const ModelDirectory*> models = served_models(status);
  if (!models) return models.error();
  return {};
}

Result<ModelHold> take_model(const ServiceStatus& status, const AskedModel& asked) {
  std::vector<AdapterChoice> choices = asked.adapters;
  std::string name = asked.name;
  if (std::optional<AdaptedName> adapted = adapted_name(status.models, name)) {
    name = adapted->base->id;
    choices.insert(choices.begin(), AdapterChoice{std::move(adapted->adapter)});
  }
  if (status.host == nullptr || status.models.find_network(name) != nullptr) {
    const Result<const ServedModel*> found = find_model(status.models, name);
    if (!found) return found.error();
    return with_adapters(ModelHold(ModelHold(), *found), choices, asked.is_bare);  // it outlives all that use it
  }
  ModelHold base = status.host->take(name, asked.keep_alive);
  if (base == nullptr) return base;
  return with_adapters(std::move(base), choices, asked.is_bare);
}

asio::awaitable<Result<ModelHold>> await_model(const ServiceStatus& status, Abandonment& abandonment, AskedModel asked) {
  const std::shared_ptr<ModelWait> wait = status.host->ask(asked.name, asked.keep_alive);
  const Abandonment::Wait waits(abandonment, wait->arrived);
  while (!wait->result) {
    if (abandonment.is_abandoned()) co_return Error{ErrorCode::kCancelled, "nobody waits for the model any more", ""};
    co_await wait->arrived.wait();
  }
  if (!*wait->result) co_return wait->result->error();
  // In use from now on. What its name means may be an adapter of it, which it has only now.
  const ModelHold loaded = **wait->result;
  if (adapted_name(status.models, asked.name)) co_return take_model(status, asked);
  co_return with_adapters(loaded, asked.adapters, asked.is_bare);
}

}  // namespace braid::net
