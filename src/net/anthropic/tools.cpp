#include "net/anthropic/tools.h"

#include "net/json/fields.h"
#include "net/wish/tools.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::net::anthropic {
namespace {

using json::at_index;
using json::at_key;
using wish::BodyFields;

constexpr wish::ToolForm kToolForm = {.holder = "", .parameters = "input_schema", .most_name_bytes = kMostNameBytes};

// The type of a tool that is none of the client's own; null: it is one.
const std::string* foreign_type(const Value& tool) {
  const Value* type = tool.find("type");
  const auto* text = type != nullptr ? type->get_if<std::string>() : nullptr;
  return text != nullptr && *text != "custom" ? text : nullptr;
}

Result<void> check_form(const Value& tool, const std::string& path) {
  if (tool.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", tool);
  const Value* type = tool.find("type");
  if (type != nullptr && !type->is_null() && type->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(path, "type"), "a string", *type);
  return {};
}

}  // namespace

Result<void> read_tools(BodyFields& fields, Value& value, const std::set<std::string>& referenced, const std::string& path) {
  auto* tools = value.get_if<ValueList>();
  if (tools == nullptr) return json::wrong_type(path, "an array", value);
  bool searched = true;  // deferred tools can be found by the client's own means
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Result<void> formed = check_form((*tools)[i], at_index(path, i));
    if (!formed) return formed;
    const std::string* type = foreign_type((*tools)[i]);
    if (type == nullptr) continue;
    fields.wish.tools_left_out.push_back(*type);
    if (type->starts_with("tool_search_tool")) searched = false;
  }
  const auto& chosen = fields.tool_choice.names;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    Value& tool = (*tools)[i];
    if (foreign_type(tool) != nullptr) continue;
    const Value* deferred = tool.find("defer_loading");
    const Value* name = tool.find("name");
    const auto* text = name != nullptr ? name->get_if<std::string>() : nullptr;
    const bool is_named = text != nullptr && (referenced.contains(*text) || (chosen && std::ranges::count(*chosen, *text) > 0));
    if (deferred != nullptr && *deferred == Value(true) && searched && text != nullptr && !is_named) continue;
    const Result<void> added = wish::add_tool(fields, std::move(tool), at_index(path, i), kToolForm);
    if (!added) return added;
  }
  return {};
}

Result<void> read_tool_choice(BodyFields& fields, const Value& value, const std::string& path) {
  using Mode = wish::ToolChoice::Mode;
  wish::ToolChoice& choice = fields.tool_choice;
  const Value* type = value.find("type");
  const std::string type_path = at_key(path, "type");
  if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
  if (const Value* single = value.find("disable_parallel_tool_use"); single != nullptr && *single == Value(true)) choice.parallel = false;
  for (const auto& [name, mode] : {std::pair("auto", Mode::kAuto), std::pair("none", Mode::kNone), std::pair("any", Mode::kRequired)}) {
    if (*type != Value(name)) continue;
    choice.mode = mode;
    return {};
  }
  if (*type != Value("tool")) return invalid_argument(fmt::format("'{}' must be one of auto, any, tool, none", type_path), type_path);
  Result<std::string> name = wish::read_function_name(value, path, kMostNameBytes);
  if (!name) return name.error();
  choice.mode = Mode::kRequired;
  choice.names = {std::move(*name)};
  return {};
}

}  // namespace braid::net::anthropic
