// The tools of a chat and how they may be used.
#include "net/json/fields.h"
#include "net/openai/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::openai {
namespace {

using json::at_index;
using json::at_key;
using Mode = ToolChoice::Mode;

constexpr std::size_t kMaxTools = 128;     // as at OpenAI
constexpr std::size_t kMaxNameBytes = 64;  // likewise

// The member `key` of an object, which must be there and be an object itself.
Result<const Value*> object_member(const Value& value, std::string_view key, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string member_path = at_key(path, key);
  const Value* member = value.find(key);
  if (member == nullptr) return invalid_argument(fmt::format("'{}' is missing", member_path), member_path);
  if (member->get_if<ValueDict>() == nullptr) return json::wrong_type(member_path, "an object", *member);
  return member;
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

Result<std::string> read_name(const Value& function, const std::string& path) {
  const std::string name_path = at_key(path, "name");
  const Value* name = function.find("name");
  if (name == nullptr) return invalid_argument(fmt::format("'{}' is missing", name_path), name_path);
  Result<std::string> text = json::read_string(*name, name_path);
  if (!text) return text;
  const bool letters = std::all_of(text->begin(), text->end(), is_name_byte);
  if (letters && !text->empty() && text->size() <= kMaxNameBytes) return text;
  return invalid_argument(fmt::format("'{}' must be 1 to {} letters, digits, underscores, dashes or dots", name_path, kMaxNameBytes),
                          name_path);
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

Result<ToolFunction> read_function(const Value& tool, const std::string& path) {
  const Result<const Value*> member = function_of(tool, path);
  if (!member) return member.error();
  const Value& value = **member;
  const std::string function_path = at_key(path, "function");
  Result<std::string> name = read_name(value, function_path);
  if (!name) return name.error();
  ToolFunction function{std::move(*name), {}, false, at_key(function_path, "parameters")};
  if (const Value* parameters = value.find("parameters"); parameters != nullptr && !parameters->is_null()) {
    if (parameters->get_if<ValueDict>() == nullptr) return json::wrong_type(function.path, "an object", *parameters);
    function.parameters = *parameters;
  }
  if (const Value* text = value.find("description"); text != nullptr && !text->is_null() && text->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(function_path, "description"), "a string", *text);
  if (const Value* strict = value.find("strict"); strict != nullptr && !strict->is_null()) {
    const Result<bool> flag = json::read_bool(*strict, at_key(function_path, "strict"));
    if (!flag) return flag.error();
    function.strict = *flag;
  }
  return function;
}

const ToolFunction* find_function(const Draft& draft, const std::string& name) {
  const auto same = [&name](const ToolFunction& function) { return function.name == name; };
  const auto found = std::find_if(draft.functions.begin(), draft.functions.end(), same);
  return found != draft.functions.end() ? &*found : nullptr;
}

Result<void> read_tools(Draft& draft, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array", value);
  if (list->size() > kMaxTools)
    return invalid_argument(fmt::format("'{}' has {} tools, at most {} may be given", path, list->size(), kMaxTools), path);
  draft.functions.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<ToolFunction> function = read_function((*list)[i], at_index(path, i));
    if (!function) return function.error();
    if (find_function(draft, function->name) != nullptr)
      return invalid_argument(fmt::format("'{}' declares the function '{}' again", at_index(path, i), function->name), at_index(path, i));
    draft.functions.push_back(std::move(*function));
  }
  draft.chat.tools = std::move(value);
  return {};
}

Result<Mode> read_mode(const Value& value, const std::string& path) {
  static constexpr std::array<std::pair<std::string_view, Mode>, 3> kModes = {
      {{"none", Mode::kNone}, {"auto", Mode::kAuto}, {"required", Mode::kRequired}}};
  for (const auto& [name, mode] : kModes)
    if (value == Value(std::string(name))) return mode;
  return invalid_argument(fmt::format("'{}' must be 'none', 'auto', 'required' or an object that names functions", path), path);
}

// {"type":"function","function":{"name":…}}
Result<std::string> read_named(const Value& value, const std::string& path) {
  const Result<const Value*> function = function_of(value, path);
  if (!function) return function.error();
  return read_name(**function, at_key(path, "function"));
}

// {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[…]}}
Result<void> read_allowed(Draft& draft, const Value& value, const std::string& path) {
  const Result<const Value*> allowed = object_member(value, "allowed_tools", path);
  if (!allowed) return allowed.error();
  const std::string allowed_path = at_key(path, "allowed_tools");
  const std::string mode_path = at_key(allowed_path, "mode");
  const Value* mode_value = (*allowed)->find("mode");
  const Result<Mode> mode = read_mode(mode_value != nullptr ? *mode_value : Value(), mode_path);
  if (!mode) return mode.error();
  const std::string tools_path = at_key(allowed_path, "tools");
  const Value* tools = (*allowed)->find("tools");
  const auto* list = tools != nullptr ? tools->get_if<ValueList>() : nullptr;
  if (list == nullptr || list->empty()) return invalid_argument(fmt::format("'{}' must be an array of tools", tools_path), tools_path);
  draft.tool_choice.mode = *mode;
  auto& names = draft.tool_choice.names.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<std::string> name = read_named((*list)[i], at_index(tools_path, i));
    if (!name) return name.error();
    names.push_back(std::move(*name));
  }
  return {};
}

Result<void> read_tool_choice(Draft& draft, Value& value, const std::string& path) {
  draft.tool_choice.names.reset();
  if (value.get_if<ValueDict>() == nullptr) {
    const Result<Mode> mode = read_mode(value, path);
    if (!mode) return mode.error();
    draft.tool_choice.mode = *mode;
    return {};
  }
  const Value* type = value.find("type");
  if (type != nullptr && *type == Value("allowed_tools")) return read_allowed(draft, value, path);
  Result<std::string> name = read_named(value, path);
  if (!name) return name.error();
  draft.tool_choice.mode = Mode::kRequired;
  draft.tool_choice.names = {std::move(*name)};
  return {};
}

Result<void> read_parallel(Draft& draft, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  draft.tool_choice.parallel = *wanted;
  return {};
}

// OpenAI's forms of 2023.
Result<void> refuse_functions(Draft&, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list != nullptr && list->empty()) return {};
  return invalid_argument(fmt::format("'{}' is not supported by this server: use 'tools'", path), path);
}

Result<void> refuse_function_call(Draft&, Value& value, const std::string& path) {
  if (value == Value("none") || value == Value("auto")) return {};
  return invalid_argument(fmt::format("'{}' is not supported by this server: use 'tool_choice'", path), path);
}

constexpr std::array kTools = {
    Parameter{"tools", read_tools},
    Parameter{"tool_choice", read_tool_choice},
    Parameter{"parallel_tool_calls", read_parallel},
    Parameter{"functions", refuse_functions},
    Parameter{"function_call", refuse_function_call},
};

// Only the functions that tool_choice names, if it does.
Result<void> choose_functions(Draft& draft) {
  const auto& names = draft.tool_choice.names;
  if (!names) return {};
  std::vector<ToolFunction> chosen;
  for (const std::string& name : *names) {
    const ToolFunction* function = find_function(draft, name);
    if (function == nullptr)
      return invalid_argument(fmt::format("'tool_choice' names the function '{}', which 'tools' does not declare", name), "tool_choice");
    chosen.push_back(*function);
  }
  draft.functions = std::move(chosen);
  return {};
}

}  // namespace

std::span<const Parameter> tool_parameters() { return kTools; }

Result<void> finish_tools(Draft& draft) {
  const ToolChoice& choice = draft.tool_choice;
  const bool required = choice.mode == Mode::kRequired;
  if (draft.functions.empty()) {
    draft.chat.tools = Value();
    if (!required && !choice.names) return {};
    return invalid_argument("'tool_choice' is only allowed when 'tools' are given", "tool_choice");
  }
  const Result<void> chosen = choose_functions(draft);
  if (!chosen) return chosen;
  if (choice.mode == Mode::kNone) {
    draft.chat.tools = Value();
    return {};
  }
  if (required && draft.model.constraints == nullptr)
    return invalid_argument("'tool_choice' cannot force calls on this server: use 'auto'", "tool_choice");
  draft.call.tools = ToolRules{std::move(draft.functions), required, choice.parallel};
  return {};
}

}  // namespace braid::net::openai
