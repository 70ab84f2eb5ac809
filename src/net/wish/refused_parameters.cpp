#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <array>
#include <fmt/format.h>

namespace braid::net::wish {
namespace {

Error refuse(const std::string& path, std::string_view accepted) {
  return invalid_argument(fmt::format("'{}' is not supported by this server{}", path, accepted), path);
}

bool is_empty(const Value& value) {
  if (const auto* list = value.get_if<ValueList>()) return list->empty();
  if (const auto* dict = value.get_if<ValueDict>()) return dict->empty();
  if (const auto* text = value.get_if<std::string>()) return text->empty();
  return false;
}

Result<void> only_empty(BodyFields&, Value& value, const std::string& path) {
  if (is_empty(value)) return {};
  return refuse(path, "");
}

Result<void> only_false(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(false)) return {};
  if (value.get_if<bool>() == nullptr) return json::wrong_type(path, "a boolean", value);
  return refuse(path, " unless it is false");
}

// Without tools, these three say nothing.
Result<void> only_no_tool(BodyFields&, Value& value, const std::string& path) {
  if (value == Value("none") || value == Value("auto")) return {};
  return refuse(path, " with another value than 'none' or 'auto'");
}

Result<void> only_text_modality(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(ValueList{Value("text")})) return {};
  return refuse(path, R"( with another value than ["text"])");
}

constexpr std::array kRefused = {
    Parameter{"tools", only_empty},
    Parameter{"tool_choice", only_no_tool},
    Parameter{"functions", only_empty},
    Parameter{"function_call", only_no_tool},
    Parameter{"modalities", only_text_modality},
    Parameter{"audio", only_empty},
    Parameter{"web_search_options", only_empty},
    // Names of llama-server and vLLM.
    Parameter{"use_beam_search", only_false},
    Parameter{"chat_template", only_empty},
};

}  // namespace

std::span<const Parameter> refused_parameters() { return kRefused; }

}  // namespace braid::net::wish
