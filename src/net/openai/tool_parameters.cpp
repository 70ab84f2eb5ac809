// The tools of a chat and how they may be used.
#include "net/json/fields.h"
#include "net/openai/request.h"
#include "net/wish/custom_tool.h"
#include "net/wish/parameters.h"
#include "net/wish/tools.h"

#include <array>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

namespace braid::net::openai {
namespace {

using json::at_index;
using json::at_key;
using Mode = wish::ToolChoice::Mode;

constexpr wish::ToolForm kForm = {.holder = "function", .parameters = "parameters", .most_name_bytes = 128};

// The member `key` of an object, which must be there and be an object itself.
Result<const Value*> object_member(const Value& value, std::string_view key, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string member_path = at_key(path, key);
  const Value* member = value.find(key);
  if (member == nullptr) return invalid_argument(fmt::format("'{}' is missing", member_path), member_path);
  if (member->get_if<ValueDict>() == nullptr) return json::wrong_type(member_path, "an object", *member);
  return member;
}

// The member that a tool of this type has its name in; nullopt: of a type that only a provider's server runs.
Result<std::optional<std::string>> holder_of(const Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string type_path = at_key(path, "type");
  const Value* type = value.find("type");
  if (type == nullptr) {  // its members say more
    const Result<const Value*> function = object_member(value, "function", path);
    return function ? invalid_argument(fmt::format("'{}' is missing", type_path), type_path) : function.error();
  }
  Result<std::string> name = json::read_string(*type, type_path);
  if (!name) return name.error();
  if (*name == "function" || *name == "custom") return std::optional(std::move(*name));
  return std::optional<std::string>();
}

Result<void> add_custom(wish::BodyFields& fields, const Value& custom, const std::string& path) {
  Result<wish::CustomTool> tool = wish::custom_tool(custom, custom.find("format"), at_key(path, "format"));
  if (!tool) return tool.error();
  const wish::ToolForm form = {.holder = "", .parameters = "parameters", .most_name_bytes = kForm.most_name_bytes};
  const Result<void> added = wish::add_tool(fields, std::move(tool->function), path, form);
  if (added) wish::mark_custom(fields, std::move(*tool));
  return added;
}

Result<void> read_tools(wish::BodyFields& fields, Value& value, const std::string& path) {
  auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  fields.functions.clear();
  fields.chat.tools = Value();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Value& tool = (*list)[i];
    const std::string tool_path = at_index(path, i);
    const Result<std::optional<std::string>> holder = holder_of(tool, tool_path);
    if (!holder) return holder.error();
    if (!*holder) {
      fields.wish.tools_left_out.push_back(*tool.find("type")->get_if<std::string>());
      continue;
    }
    const Result<const Value*> members = object_member(tool, **holder, tool_path);
    if (!members) return members.error();
    const Result<void> added = **holder == "custom" ? add_custom(fields, **members, at_key(tool_path, "custom"))
                                                    : wish::add_tool(fields, std::move(tool), tool_path, kForm);
    if (!added) return added;
  }
  return {};
}

// {"type":"function","function":{"name":…}} or the same of a custom tool; nullopt: none that this server runs.
Result<std::optional<std::string>> read_named(const Value& value, const std::string& path) {
  const Result<std::optional<std::string>> holder = holder_of(value, path);
  if (!holder || !*holder) return holder;
  const Result<const Value*> members = object_member(value, **holder, path);
  if (!members) return members.error();
  Result<std::string> name = wish::read_function_name(**members, at_key(path, **holder), kForm.most_name_bytes);
  if (!name) return name.error();
  return std::optional(std::move(*name));
}

Error not_run_here(const std::string& path) {
  const std::string type_path = at_key(path, "type");
  return invalid_argument(
      fmt::format("'{}' wants a tool that this server does not run; functions and custom tools can be called", type_path), type_path);
}

// {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}
Result<void> read_allowed(wish::BodyFields& fields, const Value& value, const std::string& path) {
  const Result<const Value*> allowed = object_member(value, "allowed_tools", path);
  if (!allowed) return allowed.error();
  const std::string allowed_path = at_key(path, "allowed_tools");
  const std::string mode_path = at_key(allowed_path, "mode");
  const Value* mode_value = (*allowed)->find("mode");
  const Result<Mode> mode = wish::read_tool_mode(mode_value != nullptr ? *mode_value : Value(), mode_path);
  if (!mode) return mode.error();
  const std::string tools_path = at_key(allowed_path, "tools");
  const Value* tools = (*allowed)->find("tools");
  const auto* list = tools != nullptr ? tools->get_if<ValueList>() : nullptr;
  if (list == nullptr || list->empty()) return invalid_argument(fmt::format("'{}' must be an array of tools", tools_path), tools_path);
  fields.tool_choice.mode = *mode;
  auto& names = fields.tool_choice.names.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<std::optional<std::string>> name = read_named((*list)[i], at_index(tools_path, i));
    if (!name) return name.error();
    if (*name) names.push_back(std::move(**name));
  }
  if (!names.empty()) return {};
  if (*mode == Mode::kRequired) return not_run_here(at_index(tools_path, 0));
  fields.tool_choice.names.reset();  // none that is allowed can be called
  fields.tool_choice.mode = Mode::kNone;
  return {};
}

Result<void> read_tool_choice(wish::BodyFields& fields, Value& value, const std::string& path) {
  fields.tool_choice.names.reset();
  if (value.get_if<ValueDict>() == nullptr) {
    const Result<Mode> mode = wish::read_tool_mode(value, path);
    if (!mode) return mode.error();
    fields.tool_choice.mode = *mode;
    return {};
  }
  const Value* type = value.find("type");
  if (type != nullptr && *type == Value("allowed_tools")) return read_allowed(fields, value, path);
  Result<std::optional<std::string>> name = read_named(value, path);
  if (!name) return name.error();
  if (!*name) return not_run_here(path);
  fields.tool_choice.mode = Mode::kRequired;
  fields.tool_choice.names = {std::move(**name)};
  return {};
}

Result<void> read_parallel(wish::BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.tool_choice.parallel = *wanted;
  return {};
}

// A tool that only a provider's server runs, as a field of its own.
Result<void> leave_out_search(wish::BodyFields& fields, Value& value, const std::string& path) {
  const Result<void> formed = wish::accept_object(fields, value, path);
  if (formed) fields.wish.tools_left_out.emplace_back(path);
  return formed;
}

// OpenAI's forms of 2023.
Result<void> refuse_functions(wish::BodyFields&, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list != nullptr && list->empty()) return {};
  return invalid_argument(fmt::format("'{}' is not supported by this server: use 'tools'", path), path);
}

Result<void> refuse_function_call(wish::BodyFields&, Value& value, const std::string& path) {
  if (value == Value("none") || value == Value("auto")) return {};
  return invalid_argument(fmt::format("'{}' is not supported by this server: use 'tool_choice'", path), path);
}

constexpr std::array kTools = {
    wish::Parameter{"tools", read_tools},
    wish::Parameter{"tool_choice", read_tool_choice},
    wish::Parameter{"parallel_tool_calls", read_parallel},
    wish::Parameter{"web_search_options", leave_out_search},
    wish::Parameter{"functions", refuse_functions},
    wish::Parameter{"function_call", refuse_function_call},
};

}  // namespace

std::span<const wish::Parameter> tool_parameters() { return kTools; }

}  // namespace braid::net::openai
