#include "net/predict/asked_network.h"

#include "net/json/fields.h"

#include <charconv>
#include <fmt/format.h>

namespace braid::net::predict {

std::string names_of(std::span<const TensorSignature> signatures) {
  std::string names;
  for (const TensorSignature& signature : signatures) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", signature.name);
  return names;
}

Result<const ServedNetwork*> find_network(const ModelDirectory& models, const NamedModel& named) {
  const std::span<const ServedNetwork* const> networks = models.networks();
  std::string ids;
  for (const ServedNetwork* network : networks) ids += fmt::format("{}'{}'", ids.empty() ? "" : ", ", network->id);
  if (named.name == nullptr) {
    if (networks.size() == 1) return networks.front();
    if (networks.empty()) return Error{ErrorCode::kNotFound, "this server serves no network; start it with the folder of one", "model"};
    return invalid_argument(fmt::format("'model' is missing; this server has the networks {}", ids), "model");
  }
  const std::string& name = *named.name->get_if<std::string>();
  if (const ServedNetwork* network = models.find_network(name)) return network;
  if (const ServedModel* model = models.find(name); model != nullptr && may_name(name, model->id))
    return invalid_argument(fmt::format("the model '{}' generates text; /v1/predict is for networks", name), named.member);
  return Error{ErrorCode::kNotFound,
               networks.empty() ? fmt::format("the network '{}' does not exist; this server has none", name)
                                : fmt::format("the network '{}' does not exist; this server has {}", name, ids),
               named.member};
}

Value names_in(const TensorFile& file) {
  ValueDict names;
  for (const char* member : {"model", "model_id"})
    if (const std::string* name = file.find_metadata(member)) names.emplace_back(member, *name);
  return Value(std::move(names));
}

Result<std::optional<std::int32_t>> read_priority(const Value* value) {
  constexpr std::int64_t kMost = 100;
  if (value == nullptr || value->is_null()) return std::optional<std::int32_t>();
  const Result<std::int64_t> priority = json::read_integer(*value, "priority", -kMost, kMost);
  if (!priority) return priority.error();
  return std::optional(static_cast<std::int32_t>(*priority));
}

Result<std::optional<std::int32_t>> read_priority(const std::string* text) {
  if (text == nullptr) return std::optional<std::int32_t>();
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (failure != std::errc() || end != text->data() + text->size())
    return invalid_argument("'priority' must be a whole number", "priority");
  const Value value(number);
  return read_priority(&value);
}

Result<bool> wants_packed(const Value* format) {
  if (format == nullptr || format->is_null() || *format == Value("float")) return false;
  if (*format == Value("base64")) return true;
  return invalid_argument("'encoding_format' must be 'float' or 'base64'", "encoding_format");
}

}  // namespace braid::net::predict
