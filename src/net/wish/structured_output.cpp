// Structured output: what OpenAI, vLLM and llama-server call it, as one ConstraintSpec.
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/wish/parameters.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_index;
using json::at_key;

constexpr std::size_t kMaxOptions = 4096;

// A request has one constraint at most.
Result<void> constrain(BodyFields& fields, ConstraintSpec spec) {
  if (fields.wish.constraint_spec)
    return invalid_argument(fmt::format("'{}' and '{}' exclude each other", fields.wish.constraint_spec->path, spec.path), spec.path);
  fields.wish.constraint_spec = std::move(spec);
  return {};
}

// A schema, or JSON text of one.
Result<void> constrain_to_schema(BodyFields& fields, Value& value, const std::string& path, bool strict) {
  if (auto* text = value.get_if<std::string>()) {
    Result<Value> parsed = json::parse(*text);
    if (!parsed) return invalid_argument(fmt::format("'{}' is not valid JSON", path), path);
    value = std::move(*parsed);
  }
  if (value.get_if<ValueDict>() == nullptr && value.get_if<bool>() == nullptr) return json::wrong_type(path, "a JSON schema", value);
  return constrain(fields, {ConstraintSpec::JsonSchema{std::move(value), strict}, path});
}

Result<void> read_json_object(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  return *wanted ? constrain(fields, {ConstraintSpec::JsonObject{}, path}) : Result<void>();
}

Result<void> read_choice(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of strings", value);
  if (list->empty() || list->size() > kMaxOptions)
    return invalid_argument(fmt::format("'{}' has {} strings, but must have from 1 to {}", path, list->size(), kMaxOptions), path);
  ConstraintSpec::Choice choice;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<std::string> option = json::read_string((*list)[i], at_index(path, i));
    if (!option) return option.error();
    choice.options.push_back(std::move(*option));
  }
  return constrain(fields, {std::move(choice), path});
}

// Null stands for a missing member.
Value* find_given(Value& value, std::string_view key) {
  auto* members = value.get_if<ValueDict>();
  Value* member = members != nullptr ? find_member(*members, key) : nullptr;
  return member != nullptr && !member->is_null() ? member : nullptr;
}

using Member = std::pair<std::string_view, Reader>;

constexpr std::array kMembers = {
    Member{"json", read_schema},   Member{"json_object", read_json_object}, Member{"regex", read_regex},
    Member{"choice", read_choice}, Member{"grammar", read_grammar},
};

// vLLM's: one of the members above.
Result<void> read_structured_outputs(BodyFields& fields, Value& value, const std::string& path) {
  auto* members = value.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", value);
  for (auto& [name, member] : *members) {
    if (member.is_null() || member == Value(false)) continue;
    const std::string member_path = at_key(path, name);
    Reader reader = nullptr;
    for (const auto& [known, read] : kMembers)
      if (known == name) reader = read;
    if (reader == nullptr) return invalid_argument(fmt::format("'{}' is not supported by this server", member_path), member_path);
    const Result<void> read = reader(fields, member, member_path);
    if (!read) return read;
  }
  return {};
}

constexpr std::array kStructuredOutput = {
    Parameter{"response_format", read_response_format},
    Parameter{"structured_outputs", read_structured_outputs},
    Parameter{"guided_json", read_schema},
    Parameter{"guided_regex", read_regex},
    Parameter{"guided_choice", read_choice},
    Parameter{"guided_grammar", read_grammar},
    Parameter{"json_schema", read_schema},
    Parameter{"grammar", read_grammar},
};

}  // namespace

Result<void> read_regex(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::string> pattern = json::read_string(value, path);
  if (!pattern) return pattern.error();
  return constrain(fields, {ConstraintSpec::Regex{std::move(*pattern)}, path});
}

Result<void> read_grammar(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::string> text = json::read_string(value, path);
  if (!text) return text.error();
  if (text->empty()) return {};  // llama-server's clients send it for "none"
  return constrain(fields, {ConstraintSpec::Grammar{std::move(*text)}, path});
}

Result<void> read_schema(BodyFields& fields, Value& value, const std::string& path) {
  return constrain_to_schema(fields, value, path, false);
}

Result<void> read_named_schema(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string schema_path = at_key(path, "schema");
  if (const Value* name = find_given(value, "name"); name != nullptr && name->get_if<std::string>() == nullptr)
    return json::wrong_type(at_key(path, "name"), "a string", *name);
  if (const Value* strict = find_given(value, "strict"); strict != nullptr && strict->get_if<bool>() == nullptr)
    return json::wrong_type(at_key(path, "strict"), "a boolean", *strict);
  Value* schema = find_given(value, "schema");
  if (schema == nullptr) return invalid_argument(fmt::format("'{}' is missing", schema_path), schema_path);
  const Value* strict = value.find("strict");
  return constrain_to_schema(fields, *schema, schema_path, strict != nullptr && *strict == Value(true));
}

Result<void> want_json_object(BodyFields& fields, const std::string& path) {
  return constrain(fields, {ConstraintSpec::JsonObject{}, path});
}

Result<void> read_response_format(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const std::string type_path = at_key(path, "type");
  const Value* type = value.find("type");
  if (type == nullptr) return invalid_argument(fmt::format("'{}' is missing", type_path), type_path);
  const Result<std::string> name = json::read_string(*type, type_path);
  if (!name) return name.error();
  if (*name == "text") return {};
  if (*name == "json_schema") {
    const std::string inner_path = at_key(path, "json_schema");
    if (Value* inner = find_given(value, "json_schema")) return read_named_schema(fields, *inner, inner_path);
    if (find_given(value, "schema") != nullptr) return read_named_schema(fields, value, path);  // llama-server's, and Responses'
    return invalid_argument(fmt::format("'{}' is missing", inner_path), inner_path);
  }
  if (*name != "json_object")
    return invalid_argument(fmt::format("'{}' must be 'text', 'json_object' or 'json_schema'", type_path), type_path);
  if (Value* schema = find_given(value, "schema")) return read_schema(fields, *schema, at_key(path, "schema"));  // llama-server's
  return want_json_object(fields, path);
}

std::span<const Parameter> structured_output_parameters() { return kStructuredOutput; }

}  // namespace braid::net::wish
