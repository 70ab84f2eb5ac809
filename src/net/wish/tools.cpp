#include "net/wish/tools.h"

#include "net/json/fields.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

namespace braid::net::wish {
namespace {

using json::at_key;
using Mode = ToolChoice::Mode;

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// The checked members of one function. `value` is where they stand, at `path`.
Result<ToolFunction> read_function(const Value& value, const std::string& path, const ToolForm& form) {
  Result<std::string> name = read_function_name(value, path, form.most_name_bytes);
  if (!name) return name.error();
  ToolFunction function{std::move(*name), {}, false, at_key(path, form.parameters)};
  if (const Value* parameters = value.find(form.parameters); parameters != nullptr && !parameters->is_null()) {
    if (parameters->get_if<ValueDict>() == nullptr) return json::wrong_type(function.path, "an object", *parameters);
    function.parameters = *parameters;
  }
  if (const Value* text = value.find("description"); text != nullptr && !text->is_null() && text->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(path, "description"), "a string", *text);
  if (const Value* strict = value.find("strict"); strict != nullptr && !strict->is_null()) {
    const Result<bool> flag = json::read_bool(*strict, at_key(path, "strict"));
    if (!flag) return flag.error();
    function.strict = *flag;
  }
  return function;
}

// {"type":"function","function":{"name":…,"description":…,"parameters":…,"strict":…}}
Value as_templates_expect(Value& tool, const ToolForm& form) {
  if (!form.holder.empty()) return std::move(tool);
  ValueDict function;
  for (auto& [name, member] : *tool.get_if<ValueDict>()) {
    if (name == form.parameters) function.emplace_back("parameters", std::move(member));
    if (name == "name" || name == "description" || name == "strict") function.emplace_back(name, std::move(member));
  }
  return ValueDict{{"type", "function"}, {"function", std::move(function)}};
}

const ToolFunction* find_function(const BodyFields& fields, const std::string& name) {
  const auto same = [&name](const ToolFunction& function) { return function.name == name; };
  const auto found = std::find_if(fields.functions.begin(), fields.functions.end(), same);
  return found != fields.functions.end() ? &*found : nullptr;
}

// Only the functions that tool_choice names, if it does.
Result<void> choose_functions(BodyFields& fields) {
  const auto& names = fields.tool_choice.names;
  if (!names) return {};
  std::vector<ToolFunction> chosen;
  for (const std::string& name : *names) {
    const ToolFunction* function = find_function(fields, name);
    if (function == nullptr)
      return invalid_argument(fmt::format("'tool_choice' names the function '{}', which 'tools' does not declare", name), "tool_choice");
    chosen.push_back(*function);
  }
  fields.functions = std::move(chosen);
  return {};
}

}  // namespace

Result<std::string> read_function_name(const Value& function, const std::string& path, std::size_t most_bytes) {
  const std::string name_path = at_key(path, "name");
  const Value* name = function.find("name");
  if (name == nullptr) return invalid_argument(fmt::format("'{}' is missing", name_path), name_path);
  Result<std::string> text = json::read_string(*name, name_path);
  if (!text) return text;
  const bool letters = std::all_of(text->begin(), text->end(), is_name_byte);
  if (letters && !text->empty() && text->size() <= most_bytes) return text;
  return invalid_argument(fmt::format("'{}' must be 1 to {} letters, digits, underscores, dashes or dots", name_path, most_bytes),
                          name_path);
}

Result<void> add_tool(BodyFields& fields, Value tool, const std::string& path, const ToolForm& form) {
  const Value* members = form.holder.empty() ? &tool : tool.find(form.holder);
  Result<ToolFunction> function = read_function(*members, form.holder.empty() ? path : at_key(path, form.holder), form);
  if (!function) return function.error();
  if (find_function(fields, function->name) != nullptr)
    return invalid_argument(fmt::format("'{}' declares the function '{}' again", path, function->name), path);
  fields.functions.push_back(std::move(*function));
  if (fields.chat.tools.is_null()) fields.chat.tools = ValueList();
  fields.chat.tools.get_if<ValueList>()->push_back(as_templates_expect(tool, form));
  return {};
}

Result<Mode> read_tool_mode(const Value& value, const std::string& path) {
  static constexpr std::array<std::pair<std::string_view, Mode>, 3> kModes = {
      {{"none", Mode::kNone}, {"auto", Mode::kAuto}, {"required", Mode::kRequired}}};
  for (const auto& [name, mode] : kModes)
    if (value == Value(std::string(name))) return mode;
  return invalid_argument(fmt::format("'{}' must be 'none', 'auto', 'required' or an object that names functions", path), path);
}

Result<void> finish_tools(BodyFields& fields) {
  const ToolChoice& choice = fields.tool_choice;
  const bool required = choice.mode == Mode::kRequired;
  if (fields.functions.empty()) {
    fields.chat.tools = Value();
    if (!required && !choice.names) return {};
    const auto& left_out = fields.wish.tools_left_out;
    if (!left_out.empty())
      return invalid_argument(
          fmt::format("'tool_choice' forces a call, and no tool can be called: this server does not run '{}'", fmt::join(left_out, "', '")),
          "tool_choice");
    return invalid_argument("'tool_choice' is only allowed when 'tools' are given", "tool_choice");
  }
  const Result<void> chosen = choose_functions(fields);
  if (!chosen) return chosen;
  if (choice.mode == Mode::kNone) {
    fields.chat.tools = Value();
    return {};
  }
  if (required && fields.model.constraints == nullptr)
    return invalid_argument("'tool_choice' cannot force calls on this server: use 'auto'", "tool_choice");
  fields.wish.tools = ToolRules{std::move(fields.functions), required, choice.parallel};
  return {};
}

}  // namespace braid::net::wish
