#include "net/wish/custom_tool.h"

#include "net/json/fields.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_key;

Result<std::optional<InputFormat>> read_format(const Value* format, const std::string& path) {
  const Value* type = format != nullptr ? format->find("type") : nullptr;
  if (type == nullptr || *type != Value("grammar")) return std::optional<InputFormat>();
  const Value* inner = format->find("grammar");
  const Value& grammar = inner != nullptr ? *inner : *format;
  const std::string grammar_path = inner != nullptr ? at_key(path, "grammar") : path;
  std::array<std::string, 2> texts;
  constexpr std::array<const char*, 2> kNames = {"syntax", "definition"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Value* member = grammar.find(kNames[i]);
    const std::string member_path = at_key(grammar_path, kNames[i]);
    if (member == nullptr) return invalid_argument(fmt::format("'{}' is missing", member_path), member_path);
    Result<std::string> text = json::read_string(*member, member_path);
    if (!text) return text.error();
    texts[i] = std::move(*text);
  }
  if (texts[0] != "regex" && texts[0] != "lark") return std::optional<InputFormat>();
  return std::optional(InputFormat{std::move(texts[1]), texts[0] == "regex", path});
}

void tell(ValueDict& function, const InputFormat& format) {
  Value* before = find_member(function, "description");
  const auto* text = before != nullptr ? before->get_if<std::string>() : nullptr;
  const std::string told = fmt::format("The input must match this grammar ({}):\n{}", format.is_regex ? "regex" : "lark", format.text);
  if (before != nullptr) {
    *before = text != nullptr ? *text + "\n\n" + told : told;
  } else {
    function.emplace_back("description", told);
  }
}

}  // namespace

Result<CustomTool> custom_tool(const Value& tool, const Value* format, const std::string& format_path) {
  ValueDict function{{"type", "function"}};
  for (const char* member : {"name", "description"})
    if (const Value* value = tool.find(member)) function.emplace_back(member, *value);
  Result<std::optional<InputFormat>> read = read_format(format, format_path);
  if (!read) return read.error();
  if (*read) tell(function, **read);
  function.emplace_back("parameters", ValueDict{{"type", "object"},
                                                {"properties", ValueDict{{kCustomInput, ValueDict{{"type", "string"}}}}},
                                                {"required", ValueList{Value(kCustomInput)}},
                                                {"additionalProperties", false}});
  function.emplace_back("strict", true);
  const Value* type = format != nullptr ? format->find("type") : nullptr;
  const bool is_text = format == nullptr || format->is_null() || (type != nullptr && *type == Value("text"));
  std::string unknown_format = *read || is_text ? std::string() : format_path;
  return CustomTool{std::move(function), std::move(*read), std::move(unknown_format)};
}

void mark_custom(BodyFields& fields, CustomTool tool) {
  ToolFunction& function = fields.functions.back();
  function.is_custom = true;
  function.format = std::move(tool.format);
  if (!tool.unknown_format.empty()) fields.wish.schema_ignored.push_back(std::move(tool.unknown_format));
}

Value arguments_of_input(std::string input) { return ValueDict{{kCustomInput, std::move(input)}}; }

}  // namespace braid::net::wish
