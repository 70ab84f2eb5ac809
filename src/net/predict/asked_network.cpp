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

Result<const ServedNetwork*> find_network(const ModelDirectory& models, const Value* name, const std::string& field) {
  const std::span<const ServedNetwork* const> networks = models.networks();
  std::string ids;
  for (const ServedNetwork* network : networks) ids += fmt::format("{}'{}'", ids.empty() ? "" : ", ", network->id);
  if (name == nullptr || name->is_null()) {
    if (networks.size() == 1) return networks.front();
    if (networks.empty()) return Error{ErrorCode::kNotFound, "this server serves no network; start it with the folder of one", "model"};
    return invalid_argument(fmt::format("'model' is missing; this server has the networks {}", ids), "model");
  }
  const auto text = json::read_string(*name, field);
  if (!text) return text.error();
  if (const ServedNetwork* network = models.find_network(*text)) return network;
  if (const ServedModel* model = models.find(*text); model != nullptr && may_name(*text, model->id))
    return invalid_argument(fmt::format("the model '{}' generates text; /v1/predict is for networks", *text), field);
  return Error{ErrorCode::kNotFound,
               networks.empty() ? fmt::format("the network '{}' does not exist; this server has none", *text)
                                : fmt::format("the network '{}' does not exist; this server has {}", *text, ids),
               field};
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
