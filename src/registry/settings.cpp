#include "registry/settings.h"

#include "registry/durable_file.h"
#include "registry/json.h"
#include "registry/manifest.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::size_t kMostSettingBytes = std::size_t{16} << 20;

bool is_parameter(const Value& value) {
  if (value.number() || value.get_if<bool>() != nullptr || value.get_if<std::string>() != nullptr) return true;
  const auto* list = value.get_if<ValueList>();
  return list != nullptr && std::ranges::all_of(*list, [](const Value& one) { return one.get_if<std::string>() != nullptr; });
}

bool is_message(const Value& value) {
  const std::string role = text_member(value, "role");
  const Value* content = value.find("content");
  return (role == "system" || role == "user" || role == "assistant") && content != nullptr && content->get_if<std::string>() != nullptr;
}

}  // namespace

Result<void> add_setting(ModelSettings& settings, std::string_view kind, std::string text) {
  if (kind == layer::kTemplate) settings.template_text = std::move(text);
  if (kind == layer::kSystem) settings.system = std::move(text);
  if (kind == layer::kLicence) settings.licences.push_back(std::move(text));
  if (kind != layer::kParameters && kind != layer::kMessages) return {};
  Result<Value> document = parse_json(text, fmt::format("the model's layer '{}'", kind));
  if (!document) return document.error();
  if (kind == layer::kParameters) {
    auto* parameters = document->get_if<ValueDict>();
    if (parameters == nullptr) return Error{ErrorCode::kBadFile, "the model's parameters are no JSON object", ""};
    settings.parameters = std::move(*parameters);
  } else {
    auto* messages = document->get_if<ValueList>();
    if (messages == nullptr) return Error{ErrorCode::kBadFile, "the model's messages are no JSON array", ""};
    settings.messages = std::move(*messages);
  }
  return check_settings(settings);
}

Result<ModelSettings> read_settings(const CatalogueEntry& entry) {
  ModelSettings settings;
  for (const CatalogueFile& file : entry.files) {
    if (file.kind == layer::kAdapter) settings.adapters.push_back(file.path);
    if (file.kind == layer::kProjector) settings.projectors.push_back(file.path);
    if (file.kind == layer::kModel || file.kind == layer::kAdapter || file.kind == layer::kProjector || file.kind == layer::kFile ||
        file.kind == "weights")
      continue;
    if (file.kind == layer::kTemplate) settings.template_file = file.path;
    Result<std::string> text = read_small_file(file.path, kMostSettingBytes);
    if (!text) return text.error();
    if (const Result<void> added = add_setting(settings, file.kind, std::move(*text)); !added) return added.error();
  }
  return settings;
}

Result<void> check_settings(const ModelSettings& settings) {
  for (const auto& [name, value] : settings.parameters)
    if (!is_parameter(value))
      return invalid_argument(fmt::format("the parameter '{}' is no number, truth value, text or list of texts", name), "parameters");
  for (const Value& message : settings.messages)
    if (!is_message(message))
      return invalid_argument("a message has a 'role' (system, user or assistant) and a 'content', both texts", "messages");
  return {};
}

}  // namespace braid::registry
