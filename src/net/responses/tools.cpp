#include "net/responses/tools.h"

#include "net/json/fields.h"
#include "net/wish/custom_tool.h"
#include "net/wish/tools.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::net::responses {
namespace {

using json::at_index;
using json::at_key;
using wish::BodyFields;
using wish::ToolChoice;

constexpr std::size_t kMostNameBytes = 128;  // of a tool and of a namespace
constexpr std::string_view kDivider = "__";
constexpr wish::ToolForm kForm = {.holder = "", .parameters = "parameters", .most_name_bytes = 2 * kMostNameBytes + kDivider.size()};

// Reads the tools of one list: of the request, or of a namespace in it.
struct ToolReader {
  BodyFields& fields;
  ClientTools& known;
  std::string space = {};
  std::string about = {};  // the namespace's description, for the first of its functions

  Result<void> read_all(Value& tools, const std::string& path) {
    auto* list = tools.get_if<ValueList>();
    if (list == nullptr) return json::wrong_type(path, "an array", tools);
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Result<void> added = read((*list)[i], at_index(path, i));
      if (!added) return added;
    }
    return {};
  }

  Result<void> read(Value& tool, const std::string& path) {
    if (tool.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", tool);
    const Value* type = tool.find("type");
    const std::string type_path = at_key(path, "type");
    if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
    const Result<std::string> kind = json::read_string(*type, type_path);
    if (!kind) return kind.error();
    if (*kind == "function") return add(std::move(tool), false, path);
    if (*kind == "custom") return add_custom(tool, path);
    if (*kind == "namespace" && space.empty()) return add_namespace(tool, path);
    fields.wish.tools_left_out.push_back(space.empty() ? *kind : fmt::format("{}.{}", space, *kind));
    return {};
  }

  Result<void> add(Value tool, bool is_custom, const std::string& path) {
    const Result<std::string> name = wish::read_function_name(tool, path, kMostNameBytes);
    if (!name) return name.error();
    std::string function = function_name(space, *name);
    auto& members = *tool.get_if<ValueDict>();
    *find_member(members, "name") = function;
    if (!about.empty()) describe(members, std::exchange(about, {}));
    const Result<void> added = wish::add_tool(fields, std::move(tool), path, kForm);
    if (added) known.insert_or_assign(std::move(function), ClientTool{space, *name, is_custom});
    return added;
  }

  Result<void> add_custom(const Value& tool, const std::string& path) {
    Result<wish::CustomTool> custom = wish::custom_tool(tool, tool.find("format"), at_key(path, "format"));
    if (!custom) return custom.error();
    const Result<void> added = add(std::move(custom->function), true, path);
    if (added) wish::mark_custom(fields, std::move(*custom));
    return added;
  }

  Result<void> add_namespace(Value& tool, const std::string& path) {
    Result<std::string> name = wish::read_function_name(tool, path, kMostNameBytes);
    if (!name) return name.error();
    const std::string tools_path = at_key(path, "tools");
    Value* tools = find_member(*tool.get_if<ValueDict>(), "tools");
    if (tools == nullptr) return invalid_argument(fmt::format("'{}' is missing", tools_path), tools_path);
    const Value* description = tool.find("description");
    const auto* text = description != nullptr ? description->get_if<std::string>() : nullptr;
    ToolReader inner{fields, known, std::move(*name), text != nullptr ? *text : std::string()};
    return inner.read_all(*tools, tools_path);
  }

  static void describe(ValueDict& function, const std::string& text) {
    Value* own = find_member(function, "description");
    const auto* own_text = own != nullptr ? own->get_if<std::string>() : nullptr;
    if (own_text != nullptr) {
      *own = text + "\n\n" + *own_text;
    } else if (own == nullptr) {
      function.emplace_back("description", text);
    }
  }
};

// A tool that is named as {"type":…,"name":…}; nullopt: none that this server runs.
Result<std::optional<std::string>> read_named(const Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* type = value.find("type");
  const std::string type_path = at_key(path, "type");
  if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
  if (*type != Value("function") && *type != Value("custom")) return std::optional<std::string>();
  Result<std::string> name = wish::read_function_name(value, path, kMostNameBytes);
  if (!name) return name.error();
  const Value* space = value.find("namespace");
  const auto* space_name = space != nullptr ? space->get_if<std::string>() : nullptr;
  return std::optional(space_name != nullptr ? function_name(*space_name, *name) : std::move(*name));
}

Error not_run_here(const std::string& path) {
  const std::string type_path = at_key(path, "type");
  return invalid_argument(
      fmt::format("'{}' wants a tool that this server does not run; functions and custom tools can be called", type_path), type_path);
}

// {"type":"allowed_tools","mode":…,"tools":[…]}
Result<void> read_allowed(ToolChoice& choice, const Value& value, const std::string& path) {
  const Value* mode_value = value.find("mode");
  const auto mode = wish::read_tool_mode(mode_value != nullptr ? *mode_value : Value(), at_key(path, "mode"));
  if (!mode) return mode.error();
  const std::string tools_path = at_key(path, "tools");
  const Value* tools = value.find("tools");
  const auto* list = tools != nullptr ? tools->get_if<ValueList>() : nullptr;
  if (list == nullptr || list->empty()) return invalid_argument(fmt::format("'{}' must be an array of tools", tools_path), tools_path);
  choice.mode = *mode;
  auto& names = choice.names.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<std::optional<std::string>> name = read_named((*list)[i], at_index(tools_path, i));
    if (!name) return name.error();
    if (*name) names.push_back(std::move(**name));
  }
  if (!names.empty()) return {};
  if (*mode == ToolChoice::Mode::kRequired) return not_run_here(at_index(tools_path, 0));
  choice.names.reset();  // none that is allowed can be called
  choice.mode = ToolChoice::Mode::kNone;
  return {};
}

}  // namespace

std::string function_name(std::string_view space, std::string_view name) {
  return space.empty() ? std::string(name) : fmt::format("{}{}{}", space, kDivider, name);
}

Result<void> read_tools(BodyFields& fields, ClientTools& known, Value& tools, const std::string& path) {
  fields.functions.clear();
  fields.chat.tools = Value();
  known.clear();
  ToolReader reader{fields, known};
  return reader.read_all(tools, path);
}

Result<void> read_tool_choice(BodyFields& fields, const Value& value, const std::string& path) {
  ToolChoice& choice = fields.tool_choice;
  if (value.get_if<ValueDict>() == nullptr) {
    const auto mode = wish::read_tool_mode(value, path);
    if (!mode) return mode.error();
    choice.mode = *mode;
    return {};
  }
  const Value* type = value.find("type");
  if (type != nullptr && *type == Value("allowed_tools")) return read_allowed(choice, value, path);
  Result<std::optional<std::string>> name = read_named(value, path);
  if (!name) return name.error();
  if (!*name) return not_run_here(path);
  choice.mode = ToolChoice::Mode::kRequired;
  choice.names = {std::move(**name)};
  return {};
}

void resolve_choice(ToolChoice& choice, const ClientTools& known) {
  if (!choice.names) return;
  for (std::string& name : *choice.names) {
    if (known.contains(name)) continue;
    const auto found = std::ranges::find_if(known, [&name](const auto& tool) { return tool.second.name == name; });
    if (found != known.end()) name = found->first;
  }
}

Value echoed_tools(const Value& tools) {
  const auto* list = tools.get_if<ValueList>();
  if (list == nullptr) return tools;
  ValueList echoed = *list;
  for (Value& tool : echoed) {
    auto* members = tool.get_if<ValueDict>();
    const Value* type = tool.find("type");
    if (members == nullptr || type == nullptr) continue;
    if (Value* inner = find_member(*members, "tools"); inner != nullptr && *type == Value("namespace")) *inner = echoed_tools(*inner);
    if (*type != Value("function")) continue;
    for (const auto& [name, silent] :
         {std::pair("description", Value()), std::pair("parameters", Value()), std::pair("strict", Value(false))})
      if (find_member(*members, name) == nullptr) members->emplace_back(name, silent);
    if (Value* strict = find_member(*members, "strict"); strict->is_null()) *strict = false;
  }
  return echoed;
}

}  // namespace braid::net::responses
