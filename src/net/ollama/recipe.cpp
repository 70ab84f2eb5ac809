#include "net/ollama/recipe.h"

#include "net/json/fields.h"

#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::net::ollama {
namespace {

const Value* given(const Value& document, std::string_view name) {
  const Value* value = document.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// Reads the member `name` into `text`, if it is there.
Result<void> read_text(const Value& document, const std::string& name, std::string& text) {
  const Value* value = given(document, name);
  if (value == nullptr) return {};
  Result<std::string> read = json::read_string(*value, name);
  if (!read) return read.error();
  text = std::move(*read);
  return {};
}

Result<void> read_files(const Value& document, const std::string& name, std::vector<std::pair<std::string, std::string>>& files) {
  const Value* value = given(document, name);
  if (value == nullptr) return {};
  const auto* dict = value->get_if<ValueDict>();
  if (dict == nullptr) return json::wrong_type(name, "an object of names and digests", *value);
  for (const auto& [file, digest] : *dict) {
    Result<std::string> text = json::read_string(digest, json::at_key(name, file));
    if (!text) return text.error();
    files.emplace_back(file, std::move(*text));
  }
  return {};
}

// A text or a list of texts.
Result<void> read_licences(const Value& document, std::vector<std::string>& licences) {
  const Value* value = given(document, "license");
  if (value == nullptr) return {};
  const auto* list = value->get_if<ValueList>();
  const ValueList one = list == nullptr ? ValueList{*value} : ValueList();
  const ValueList& all = list == nullptr ? one : *list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Result<std::string> text = json::read_string(all[i], list == nullptr ? "license" : json::at_index("license", i));
    if (!text) return text.error();
    licences.push_back(std::move(*text));
  }
  return {};
}

// What a registry could not keep: each has the role and the content of a message.
Result<void> read_first_messages(const Value& document, ValueList& messages) {
  const Value* value = given(document, "messages");
  if (value == nullptr) return {};
  const auto* list = value->get_if<ValueList>();
  if (list == nullptr) return json::wrong_type("messages", "an array", *value);
  for (std::size_t i = 0; i < list->size(); ++i) {
    ValueDict message;
    for (const std::string_view part : {"role", "content"}) {
      const std::string path = json::at_key(json::at_index("messages", i), part);
      const Value* said = (*list)[i].find(part);
      if (said == nullptr) return invalid_argument(fmt::format("'{}' is missing", path), path);
      Result<std::string> text = json::read_string(*said, path);
      if (!text) return text.error();
      message.emplace_back(std::string(part), std::move(*text));
    }
    messages.emplace_back(std::move(message));
  }
  return {};
}

}  // namespace

Result<std::string> model_in(const Value& document) {
  for (const std::string_view key : {"model", "name"})
    if (const Value* value = given(document, key)) {
      Result<std::string> text = json::read_string(*value, std::string(key));
      if (text && text->empty()) return invalid_argument(fmt::format("'{}' is empty", key), std::string(key));
      return text;
    }
  return invalid_argument("'model' is missing", "model");
}

Result<ModelRecipe> read_recipe(Value& document) {
  ModelRecipe recipe;
  Result<std::string> model = model_in(document);
  if (!model) return model.error();
  recipe.model = std::move(*model);
  if (given(document, "modelfile") != nullptr || given(document, "path") != nullptr)
    return invalid_argument("'modelfile' and 'path' are of an older API: say 'from', 'files', 'template', 'system', 'parameters' and so on",
                            "modelfile");
  ModelSettings& settings = recipe.settings;
  for (const Result<void>& read : {read_text(document, "from", recipe.from), read_text(document, "template", settings.template_text),
                                   read_text(document, "system", settings.system), read_text(document, "quantization", recipe.quantize),
                                   read_text(document, "quantize", recipe.quantize), read_files(document, "files", recipe.files),
                                   read_files(document, "adapters", recipe.adapters), read_licences(document, settings.licences),
                                   read_first_messages(document, settings.messages)})
    if (!read) return read.error();
  recipe.clears_system = given(document, "system") != nullptr && settings.system.empty();
  if (const Value* parameters = given(document, "parameters")) {
    const auto* dict = parameters->get_if<ValueDict>();
    if (dict == nullptr) return json::wrong_type("parameters", "an object", *parameters);
    settings.parameters = *dict;
  }
  return recipe;
}

}  // namespace braid::net::ollama
