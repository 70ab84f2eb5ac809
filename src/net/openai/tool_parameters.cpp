// The tools of a chat and how they may be used.
#include "net/json/fields.h"
#include "net/openai/request.h"
#include "net/wish/parameters.h"
#include "net/wish/tools.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::openai {
namespace {

using json::at_index;
using json::at_key;
using Mode = wish::ToolChoice::Mode;

constexpr wish::ToolForm kForm = {.holder = "function", .parameters = "parameters", .most_tools = 128, .most_name_bytes = 64};

// The member `key` of an object, which must be there and be an object itself.
Result<const Value*> object_member(const Value& value, std::string_view key, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string member_path = at_key(path, key);
  const Value* member = value.find(key);
  if (member == nullptr) return invalid_argument(fmt::format("'{}' is missing", member_path), member_path);
  if (member->get_if<ValueDict>() == nullptr) return json::wrong_type(member_path, "an object", *member);
  return member;
}

// The type is the only one there is.
Result<void> check_type(const Value& value, const std::string& path) {
  const std::string type_path = at_key(path, "type");
  const Value* type = value.find("type");
  if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
  const Result<std::string> name = json::read_string(*type, type_path);
  if (!name) return name.error();
  if (*name == "function") return {};
  return invalid_argument(fmt::format("'{}' is '{}', and only 'function' is supported", type_path, *name), type_path);
}

// The member "function" of what is of that type. Another type says more than the member that it lacks.
Result<const Value*> function_of(const Value& value, const std::string& path) {
  const bool typed = value.find("type") != nullptr;
  if (const Result<void> type = typed ? check_type(value, path) : Result<void>(); !type) return type.error();
  const Result<const Value*> function = object_member(value, "function", path);
  if (!function || typed) return function;
  return check_type(value, path).error();
}

Result<void> read_tools(wish::BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  for (std::size_t i = 0; list != nullptr && i < std::min(list->size(), kForm.most_tools); ++i) {
    const Result<const Value*> function = function_of((*list)[i], at_index(path, i));
    if (!function) return function.error();
  }
  return wish::read_tools(fields, value, path, kForm);
}

// {"type":"function","function":{"name":…}}
Result<std::string> read_named(const Value& value, const std::string& path) {
  const Result<const Value*> function = function_of(value, path);
  if (!function) return function.error();
  return wish::read_function_name(**function, at_key(path, "function"), kForm.most_name_bytes);
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
    Result<std::string> name = read_named((*list)[i], at_index(tools_path, i));
    if (!name) return name.error();
    names.push_back(std::move(*name));
  }
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
  Result<std::string> name = read_named(value, path);
  if (!name) return name.error();
  fields.tool_choice.mode = Mode::kRequired;
  fields.tool_choice.names = {std::move(*name)};
  return {};
}

Result<void> read_parallel(wish::BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.tool_choice.parallel = *wanted;
  return {};
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
    wish::Parameter{"functions", refuse_functions},
    wish::Parameter{"function_call", refuse_function_call},
};

}  // namespace

std::span<const wish::Parameter> tool_parameters() { return kTools; }

}  // namespace braid::net::openai
