#include "grammar/json/keywords.h"

#include "grammar/code_points.h"
#include "grammar/json/digits.h"
#include "grammar/json/formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <initializer_list>

namespace braid::grammar::json {
namespace {

enum class Form : std::uint8_t {
  kAny,
  kNever,  // restricts, and is not honoured
  kCount,
  kNumber,
  kString,
  kPatterns,  // a string; merging makes a list of them
  kFormat,    // restricts where it is known
  kFlag,
  kSchema,
  kSchemas,
  kNamedSchemas,
  kNames,
  kType,
  kValues
};

struct Keyword {
  std::string_view name;
  Form form;
};

// Those that are not among them are annotations.
constexpr Keyword kKeywords[] = {
    {"type", Form::kType},
    {"enum", Form::kValues},
    {"const", Form::kAny},
    {"anyOf", Form::kSchemas},
    {"oneOf", Form::kSchemas},
    {"allOf", Form::kSchemas},
    {"$ref", Form::kString},
    {"properties", Form::kNamedSchemas},
    {"required", Form::kNames},
    {"additionalProperties", Form::kSchema},
    {"patternProperties", Form::kNamedSchemas},
    {"propertyNames", Form::kSchema},
    {"minProperties", Form::kCount},
    {"maxProperties", Form::kCount},
    {"items", Form::kSchema},
    {"prefixItems", Form::kSchemas},
    {"minItems", Form::kCount},
    {"maxItems", Form::kCount},
    {"uniqueItems", Form::kFlag},
    {"minLength", Form::kCount},
    {"maxLength", Form::kCount},
    {"pattern", Form::kPatterns},
    {"format", Form::kFormat},
    {"multipleOf", Form::kNumber},
    {"minimum", Form::kNumber},
    {"maximum", Form::kNumber},
    {"exclusiveMinimum", Form::kNumber},
    {"exclusiveMaximum", Form::kNumber},
    {"not", Form::kSchema},
    {"unevaluatedProperties", Form::kSchema},
    {"unevaluatedItems", Form::kSchema},
    {"if", Form::kNever},
    {"contains", Form::kNever},
    {"dependencies", Form::kNever},
    {"dependentRequired", Form::kNever},
    {"dependentSchemas", Form::kNever},
    {"$dynamicRef", Form::kNever},
    {"$recursiveRef", Form::kNever},
};

constexpr std::array<std::pair<std::string_view, Type>, 7> kTypeNames = {{{"object", Type::kObject},
                                                                          {"array", Type::kArray},
                                                                          {"string", Type::kString},
                                                                          {"number", Type::kNumber},
                                                                          {"integer", Type::kInteger},
                                                                          {"boolean", Type::kBoolean},
                                                                          {"null", Type::kNull}}};

const Types kAllTypes = {Type::kObject, Type::kArray, Type::kString, Type::kNumber, Type::kInteger, Type::kBoolean, Type::kNull};

bool is_schema(const Value& value) { return value.get_if<bool>() != nullptr || value.get_if<ValueDict>() != nullptr; }
bool is_anything(const Value&) { return true; }
bool is_text(const Value& value) { return value.get_if<std::string>() != nullptr; }
bool is_number(const Value& value) { return value.number().has_value(); }

bool is_type_name(const Value& value) {
  const auto* name = value.get_if<std::string>();
  return name != nullptr && std::any_of(kTypeNames.begin(), kTypeNames.end(), [&](const auto& type) { return type.first == *name; });
}

template <class Predicate>
bool is_list_of(const Value& value, bool may_be_empty, Predicate predicate) {
  const auto* list = value.get_if<ValueList>();
  return list != nullptr && (may_be_empty || !list->empty()) && std::all_of(list->begin(), list->end(), predicate);
}

std::optional<std::uint32_t> count(const Value& value) {
  constexpr double kMost = 4e9;  // more is as good as no bound
  const double real = value.number().value_or(-1.0);
  if (real < 0.0 || std::floor(real) != real) return std::nullopt;
  return static_cast<std::uint32_t>(std::min(real, kMost));
}

// What the keyword's value should have been, or nothing when it is that.
std::string_view wrong(Form form, const Value& value) {
  switch (form) {
    case Form::kAny:
    case Form::kFormat:
    case Form::kNever:
      return {};
    case Form::kCount:
      return count(value) ? "" : "a whole number of 0 or more";
    case Form::kNumber:
      return is_number(value) ? "" : "a number";
    case Form::kPatterns:
      return is_text(value) || is_list_of(value, false, is_text) ? "" : "a string";
    case Form::kString:
      return is_text(value) ? "" : "a string";
    case Form::kFlag:
      return value.get_if<bool>() != nullptr ? "" : "true or false";
    case Form::kSchema:
      return is_schema(value) ? "" : "a schema: an object, true or false";
    case Form::kSchemas:
      return is_list_of(value, false, is_anything) ? "" : "a list of one or more schemas";
    case Form::kNames:
      return is_list_of(value, true, is_anything) ? "" : "a list of strings";
    case Form::kType:
      return is_type_name(value) || is_list_of(value, false, is_type_name) ? "" : "the name of a type or a list of such";
    case Form::kValues:
      return is_list_of(value, false, is_anything) ? "" : "a list of one or more values";
    case Form::kNamedSchemas:
      break;
  }
  return value.get_if<ValueDict>() != nullptr ? "" : "an object of schemas";
}

// Why a keyword cannot be honoured; empty: it can.
std::string objection(Form form, const Value& value) {
  if (form == Form::kNever) return "this schema keyword is not supported";
  const std::string_view expected = wrong(form, value);
  return expected.empty() ? "" : fmt::format("must be {}", expected);
}

// Of a list or dict of the right kind: puts `true` in the place of schemas that are none, and removes names that are none.
std::optional<Error> mend_parts(Form form, Value& value, const std::string& place, Leniency& leniency) {
  const auto mend = [&leniency](Value& schema, const std::string& at) -> std::optional<Error> {
    if (is_schema(schema)) return std::nullopt;
    schema = true;
    return leniency.leave_out(at, "must be a schema: an object, true or false");
  };
  if (form == Form::kNamedSchemas)
    for (auto& [name, schema] : *value.get_if<ValueDict>())
      if (auto error = mend(schema, place + "." + name)) return error;
  if (form == Form::kSchemas) {
    auto& list = *value.get_if<ValueList>();
    for (std::size_t i = 0; i < list.size(); ++i)
      if (auto error = mend(list[i], fmt::format("{}[{}]", place, i))) return error;
  }
  if (form == Form::kNames && std::erase_if(*value.get_if<ValueList>(), [](const Value& name) { return !is_text(name); }) > 0)
    return leniency.leave_out(place, "must be a list of strings");
  return std::nullopt;
}

ValueDict modernised(const ValueDict& schema) {
  const Value* items = find(schema, "items");
  const bool tuple = items != nullptr && items->get_if<ValueList>() != nullptr;
  ValueDict out;
  for (const auto& [name, value] : schema) {
    const auto* flag = value.get_if<bool>();
    if (name == "items" && tuple) {
      if (!value.get_if<ValueList>()->empty()) out.emplace_back("prefixItems", value);
    } else if (name == "additionalItems") {
      if (tuple) out.emplace_back("items", value);
    } else if (flag != nullptr && (name == "exclusiveMinimum" || name == "exclusiveMaximum")) {
      if (const Value* bound = *flag ? find(schema, name == "exclusiveMinimum" ? "minimum" : "maximum") : nullptr)
        out.emplace_back(name, *bound);
    } else {
      out.emplace_back(name, value);
    }
  }
  return out;
}

bool mentions(const ValueDict& schema, std::initializer_list<std::string_view> keywords) {
  return std::any_of(keywords.begin(), keywords.end(), [&](std::string_view keyword) { return find(schema, keyword) != nullptr; });
}

const Keyword* keyword_named(std::string_view name) {
  const auto* keyword = std::find_if(std::begin(kKeywords), std::end(kKeywords), [&](const Keyword& k) { return k.name == name; });
  return keyword == std::end(kKeywords) ? nullptr : keyword;
}

bool mentions_known_format(const ValueDict& schema) {
  const Value* format = find(schema, "format");
  const auto* name = format == nullptr ? nullptr : format->get_if<std::string>();
  return name != nullptr && format_pattern(*name).has_value();
}

}  // namespace

Error refused(const std::string& place, std::string_view why) { return invalid_argument(fmt::format("{}: {}", place, why), place); }

const Value* find(const ValueDict& schema, std::string_view keyword) {
  const auto entry = std::find_if(schema.begin(), schema.end(), [&](const auto& member) { return member.first == keyword; });
  return entry == schema.end() ? nullptr : &entry->second;
}

std::uint32_t count_or(const ValueDict& schema, std::string_view keyword, std::uint32_t otherwise) {
  const Value* value = find(schema, keyword);
  return value == nullptr ? otherwise : count(*value).value_or(otherwise);
}

std::optional<Error> Leniency::leave_out(const std::string& place, std::string_view why) {
  if (strict_) return refused(places_.written(place), why);
  if (!known_.insert(place).second) return std::nullopt;
  std::string written = places_.written(place);
  if (std::ranges::find(left_out_, written) == left_out_.end()) left_out_.push_back(std::move(written));
  return std::nullopt;
}

bool restricts(std::string_view keyword) { return keyword_named(keyword) != nullptr; }

Result<ValueDict> usable_keywords(const ValueDict& schema, const std::string& path, Leniency& leniency) {
  ValueDict out;
  for (auto& [name, value] : modernised(schema)) {
    if (const Keyword* keyword = keyword_named(name)) {
      const std::string place = path + "." + name;
      if (const std::string why = objection(keyword->form, value); !why.empty()) {
        if (auto error = leniency.leave_out(place, why)) return *error;
        continue;
      }
      if (auto error = mend_parts(keyword->form, value, place, leniency)) return *error;
    }
    out.emplace_back(name, std::move(value));
  }
  return out;
}

Types types_of(const ValueDict& schema) {
  const Value* type = find(schema, "type");
  Types types;
  const auto add = [&](const Value& name) {
    const auto* entry =
        std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const auto& t) { return Value(std::string(t.first)) == name; });
    if (entry == kTypeNames.end()) return;  // of a schema that is compared only, and never compiled
    types.insert(entry->second);
    if (entry->second == Type::kNumber) types.insert(Type::kInteger);
  };
  if (type == nullptr) {
    if (mentions(schema, {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
                          "maxProperties", "unevaluatedProperties"}))
      types.insert(Type::kObject);
    if (mentions(schema, {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"})) types.insert(Type::kArray);
    if (mentions(schema, {"minLength", "maxLength", "pattern"}) || mentions_known_format(schema)) types.insert(Type::kString);
    if (mentions(schema, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}))
      types.insert({Type::kNumber, Type::kInteger});
    return types.empty() ? kAllTypes : types;
  }
  if (const auto* names = type->get_if<ValueList>()) {
    for (const Value& name : *names) add(name);
  } else {
    add(*type);
  }
  return types;
}

Type type_of_value(const Value& value) {
  if (value.get_if<ValueDict>() != nullptr) return Type::kObject;
  if (value.get_if<ValueList>() != nullptr) return Type::kArray;
  if (is_text(value)) return Type::kString;
  if (value.get_if<bool>() != nullptr) return Type::kBoolean;
  if (value.is_null()) return Type::kNull;
  const auto* real = value.get_if<double>();
  return real == nullptr || std::floor(*real) == *real ? Type::kInteger : Type::kNumber;
}

bool has_type(const Types& types, const Value& value) { return types.contains(type_of_value(value)); }

bool within_bounds(const ValueDict& schema, const Value& value) {
  if (const auto* text = value.get_if<std::string>()) {
    std::uint32_t length = 0;
    std::uint32_t point = 0;
    for (std::size_t at = 0; at < text->size() && next_code_point(*text, at, point);) ++length;
    return length >= count_or(schema, "minLength", 0) && length <= count_or(schema, "maxLength", ~0U);
  }
  if (!is_number(value)) return true;
  const auto on = [&](std::string_view keyword, auto holds) {
    const Value* bound = find(schema, keyword);
    return bound == nullptr || holds(*bound);
  };
  return on("minimum", [&](const Value& bound) { return !less(value, bound); }) &&
         on("maximum", [&](const Value& bound) { return !less(bound, value); }) &&
         on("exclusiveMinimum", [&](const Value& bound) { return less(bound, value); }) &&
         on("exclusiveMaximum", [&](const Value& bound) { return less(value, bound); });
}

bool less(const Value& a, const Value& b) { return less(decimal_of(a), decimal_of(b)); }

bool same_value(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return decimal_of(a) == decimal_of(b);
  if (const auto* x = a.get_if<ValueList>(), *y = b.get_if<ValueList>(); x != nullptr && y != nullptr)
    return x->size() == y->size() && std::equal(x->begin(), x->end(), y->begin(), same_value);
  if (const auto* x = a.get_if<ValueDict>(), *y = b.get_if<ValueDict>(); x != nullptr && y != nullptr)
    return x->size() == y->size() && std::all_of(x->begin(), x->end(), [&](const auto& member) {
             const Value* other = b.find(member.first);
             return other != nullptr && same_value(member.second, *other);
           });
  return a == b;
}

}  // namespace braid::grammar::json
