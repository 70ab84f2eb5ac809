// Arrays and objects.
#include "grammar/json/schema.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMaxProperties = 1000;  // of one object
constexpr std::string_view kTooManyProperties = "an object may have 1000 properties";
constexpr std::size_t kMaxExcludedName = 256;  // bytes of a property's name that additional ones must differ from

constexpr std::size_t kMaxPatternMatches = 10'000;

// What an object's members without a name must satisfy; where schemas are joined, those of all parts have a name.
const Value* additional_of(const ValueDict& schema) {
  const Value* additional = find(schema, "additionalProperties");
  return additional != nullptr ? additional : find(schema, "unevaluatedProperties");
}

// Where that stands.
std::string place_of_additional(const ValueDict& schema) {
  return find(schema, "additionalProperties") != nullptr ? ".additionalProperties" : ".unevaluatedProperties";
}

}  // namespace

SchemaCompiler::Expr SchemaCompiler::compile_array(const ValueDict& schema, const std::string& path) {
  std::uint32_t min = count_or(schema, "minItems", 0);
  const std::uint32_t max = count_or(schema, "maxItems", kUnbounded);
  if (const Value* unique = find(schema, "uniqueItems"); unique != nullptr && *unique == Value(true) && max > 1)
    if (auto error = leniency_.leave_out(path + ".uniqueItems", "this schema keyword is not supported")) return *error;

  std::vector<Member> first;
  const Value* prefix = find(schema, "prefixItems");
  if (prefix != nullptr) {
    const auto& schemas = *prefix->get_if<ValueList>();
    for (std::size_t i = 0; i < schemas.size() && i < max; ++i) {
      const Expr item = compile_within(schemas[i], fmt::format("{}.prefixItems[{}]", path, i), i < min);
      if (!item) return item;
      first.push_back({*item, i < min});
    }
  }
  const auto placed = static_cast<std::uint32_t>(first.size());
  min -= std::min(min, placed);
  std::uint32_t more = max == kUnbounded ? kUnbounded : max - placed;
  const Value* items = find(schema, find(schema, "items") != nullptr ? "items" : "unevaluatedItems");
  if (items == nullptr && prefix != nullptr && min == 0) more = 0;  // none are invented
  ExprId rest = grammar_.nothing();
  if (more > 0) {
    const std::string place = path + (find(schema, "items") != nullptr ? ".items" : ".unevaluatedItems");
    const Expr item = items == nullptr ? syntax_.value() : compile_within(*items, place, min > 0);
    if (!item) return item;
    rest = *item;
  }
  if (min > more) return grammar_.nothing();

  const bool may_be_empty = min == 0 && std::none_of(first.begin(), first.end(), [](const Member& m) { return m.required; });
  std::vector<ExprId> options;
  if (may_be_empty) options.push_back(syntax_.empty_brackets());
  // An element stands only where all before it do.
  ExprId tail = more == 0 ? grammar_.empty() : grammar_.repeat(grammar_.sequence({syntax_.comma(), rest}), min, more);
  if (first.empty()) {
    const std::uint32_t others = more == kUnbounded ? kUnbounded : more - std::min(more, 1U);
    if (more > 0)
      options.push_back(syntax_.brackets(
          grammar_.sequence({rest, grammar_.repeat(grammar_.sequence({syntax_.comma(), rest}), min - std::min(min, 1U), others)})));
    return grammar_.choice(std::move(options));
  }
  for (std::size_t i = first.size(); i-- > 1;) {
    tail = grammar_.sequence({syntax_.comma(), first[i].expr, tail});
    if (!first[i].required) tail = grammar_.optional(tail);
  }
  options.push_back(syntax_.brackets(grammar_.sequence({first.front().expr, tail})));
  return grammar_.choice(std::move(options));
}

SchemaCompiler::Expr SchemaCompiler::compile_object(const ValueDict& schema, const std::string& path) {
  Members names;
  if (auto error = name_members(schema, names, path)) return *error;
  if (names.unknown) return syntax_.object();
  Expr other = compile_other_members(schema, names, path);
  if (!other) return other;
  const std::uint32_t min = count_or(schema, "minProperties", 0);
  const std::uint32_t max = count_or(schema, "maxProperties", kUnbounded);
  if (min > max || names.forbidden || names.required.size() > max) return grammar_.nothing();

  // Which of the optional ones are there is narrowed where their number is bounded.
  auto optional = static_cast<std::uint32_t>(std::min<std::size_t>(max, names.named.size()) - names.required.size());
  std::uint32_t owed = min - std::min(min, static_cast<std::uint32_t>(names.required.size()));
  std::vector<Member> list;
  for (const auto& [name, value] : names.named) {
    bool required = names.required.contains(name);
    if (!required && optional == 0) continue;
    if (!required) --optional;
    if (!required && owed > 0) {
      required = true;
      --owed;
    }
    const auto elsewhere = names.places.find(name);
    const std::string place = path + (elsewhere != names.places.end() ? elsewhere->second : ".properties." + name);
    const Expr expr = compile_within(value, place, required);
    if (!expr) return expr;
    if (*expr == grammar_.nothing() && !required) continue;
    list.push_back({syntax_.member(grammar_.bytes(quote(name)), *expr), required});
  }
  const bool open = *other != grammar_.nothing();
  // Members that a schema does not name may repeat a key, so more than one of them is not known to be distinct.
  if (owed > (open ? 1U : 0U)) {
    if (auto error = leniency_.leave_out(path + ".minProperties", "more properties than are named, and one, are not supported"))
      return *error;
    owed = open ? 1 : 0;
  }
  const std::uint32_t most = max == kUnbounded ? kUnbounded : max - static_cast<std::uint32_t>(list.size());
  return members(list, *other, owed, open ? most : 0);
}

// The properties, those that are required, and those that propertyNames lists.
std::optional<Error> SchemaCompiler::name_members(const ValueDict& schema, Members& out, const std::string& path) {
  if (const Value* properties = find(schema, "properties"))
    for (const auto& [name, value] : *properties->get_if<ValueDict>())
      if (find(out.named, name) == nullptr) out.named.emplace_back(name, value);
  const Value* additional = additional_of(schema);
  const Value otherwise = additional == nullptr ? Value(true) : *additional;
  const auto* required = find(schema, "required");
  if (required != nullptr)
    for (const Value& item : *required->get_if<ValueList>()) out.required.insert(*item.get_if<std::string>());
  if (out.named.size() > kMaxProperties || out.required.size() > kMaxProperties)
    return give_up(out, path + (out.named.size() > kMaxProperties ? ".properties" : ".required"), kTooManyProperties);
  if (required != nullptr)
    for (const Value& item : *required->get_if<ValueList>()) {
      const std::string& name = *item.get_if<std::string>();
      if (find(out.named, name) != nullptr) continue;
      out.named.emplace_back(name, matches_pattern(schema, name) ? Value(true) : otherwise);
      out.places.emplace(name, place_of_additional(schema));
    }
  if (auto error = add_patterns(schema, out, path)) return error;
  return restrict_names(schema, out, path);
}

std::optional<Error> SchemaCompiler::give_up(Members& out, const std::string& place, std::string_view why) {
  out.unknown = true;
  return leniency_.leave_out(place, why);
}

bool SchemaCompiler::matches_pattern(const ValueDict& schema, const std::string& name) {
  const Value* patterns = find(schema, "patternProperties");
  if (patterns == nullptr) return false;
  const auto& list = *patterns->get_if<ValueDict>();
  return std::any_of(list.begin(), list.end(), [&](const auto& pattern) {
    const auto language = languages_.regex(pattern.first);
    return language && languages_.matches(*language, name);
  });
}

// What patternProperties say of members that have a name.
std::optional<Error> SchemaCompiler::add_patterns(const ValueDict& schema, Members& out, const std::string& path) {
  const Value* patterns = find(schema, "patternProperties");
  if (patterns == nullptr) return std::nullopt;
  const auto& list = *patterns->get_if<ValueDict>();
  if (list.size() * out.named.size() > kMaxPatternMatches)
    return give_up(out, path + ".patternProperties", "too many patterns and properties");
  for (const auto& [pattern, value] : list) {
    const auto language = languages_.regex(pattern, true);
    if (!language) continue;  // left out where the patterns' own members are made
    for (auto& [name, member] : out.named) {
      if (!languages_.matches(*language, name)) continue;
      if (member == Value(true)) {
        member = value;
        out.places[name] = ".patternProperties." + pattern;
      } else {
        member = ValueDict{{"allOf", ValueList{member, value}}};
      }
    }
  }
  return std::nullopt;
}

std::optional<Error> SchemaCompiler::restrict_names(const ValueDict& schema, Members& out, const std::string& path) {
  const Value* written = find(schema, "propertyNames");
  if (written == nullptr || *written == Value(true)) return std::nullopt;
  const std::string place = path + ".propertyNames";
  const auto* dict = resolve(*written).get_if<ValueDict>();
  const auto rule = dict == nullptr ? Result<ValueDict>(ValueDict{}) : usable_keywords(*dict, place, leniency_);
  if (!rule) return rule.error();
  const Value* values = find(*rule, find(*rule, "enum") != nullptr ? "enum" : "const");
  if (values != nullptr)
    return list_names(schema, values->get_if<ValueList>() != nullptr ? *values->get_if<ValueList>() : ValueList{*values}, out, place);
  if (out.named.empty()) return std::nullopt;
  static const std::set<std::string_view> kTold = {"type", "format", "pattern", "minLength", "maxLength"};
  if (dict == nullptr ||
      std::any_of(rule->begin(), rule->end(), [](const auto& m) { return restricts(m.first) && !kTold.contains(m.first); }))
    return leniency_.leave_out(place, "this is not supported beside properties or required");
  const auto pattern = patterns_of(*rule, place);
  if (!pattern) return pattern.error();
  const auto allowed = [&](const std::string& name) { return within_bounds(*rule, Value(name)) && languages_.matches(*pattern, name); };
  out.forbidden = !std::all_of(out.required.begin(), out.required.end(), allowed);
  std::erase_if(out.named, [&](const auto& member) { return !allowed(member.first); });
  return std::nullopt;
}

// `place` is that of propertyNames, which allow `names` only.
std::optional<Error> SchemaCompiler::list_names(const ValueDict& schema, const ValueList& names, Members& out, const std::string& place) {
  const Value* additional = additional_of(schema);
  const bool closed = additional != nullptr ? *additional == Value(false) : find(schema, "properties") != nullptr;
  const auto is_listed = [&](const std::string& name) { return std::find(names.begin(), names.end(), Value(name)) != names.end(); };
  out.forbidden = !std::all_of(out.required.begin(), out.required.end(), is_listed);
  std::erase_if(out.named, [&](const auto& member) { return !is_listed(member.first); });
  out.listed = true;
  for (const Value& item : names)
    if (const auto* name = item.get_if<std::string>(); name != nullptr && !closed && find(out.named, *name) == nullptr) {
      out.named.emplace_back(*name, additional == nullptr ? Value(true) : *additional);
      out.places.emplace(*name, place_of_additional(schema));
    }
  return out.named.size() > kMaxProperties ? give_up(out, place, kTooManyProperties) : std::nullopt;
}

// Members in order, each with a comma before it unless it is the first that is there.
ExprId SchemaCompiler::members(const std::vector<Member>& named, ExprId other, std::uint32_t other_min, std::uint32_t other_max) {
  const ExprId more =
      other_max == 0 ? grammar_.empty() : grammar_.repeat(grammar_.sequence({syntax_.comma(), other}), other_min, other_max);
  const std::uint32_t after_one = other_max == kUnbounded ? kUnbounded : other_max - std::min(other_max, 1U);
  ExprId rest = more;  // what follows when a member is there already
  std::vector<ExprId> first;
  if (other_max > 0)
    first.push_back(grammar_.sequence(
        {other, grammar_.repeat(grammar_.sequence({syntax_.comma(), other}), other_min - std::min(other_min, 1U), after_one)}));
  bool may_be_empty = other_min == 0;
  for (std::size_t i = named.size(); i-- > 0;) {
    const ExprId from_here = grammar_.sequence({named[i].expr, rest});
    if (named[i].required) first.clear();
    first.push_back(from_here);
    may_be_empty = may_be_empty && !named[i].required;
    const ExprId with_comma = grammar_.sequence({syntax_.comma(), named[i].expr});
    rest = grammar_.sequence({named[i].required ? with_comma : grammar_.optional(with_comma), rest});
  }
  std::vector<ExprId> options;
  if (may_be_empty) options.push_back(syntax_.empty_braces());
  if (!first.empty()) options.push_back(syntax_.braces(grammar_.choice(std::move(first))));
  return grammar_.choice(std::move(options));
}

SchemaCompiler::Expr SchemaCompiler::compile_other_members(const ValueDict& schema, const Members& names, const std::string& path) {
  if (names.listed) return grammar_.nothing();
  if (find(schema, "patternProperties") != nullptr) return compile_pattern_members(schema, names, path);
  const Value* additional = additional_of(schema);
  const bool invented = additional == nullptr && (find(schema, "properties") != nullptr || find(schema, "required") != nullptr);
  if (invented || (additional != nullptr && *additional == Value(false))) return grammar_.nothing();
  const Expr key = compile_keys(schema, names, path);
  if (!key || *key == grammar_.nothing()) return key;
  const Expr value = additional == nullptr ? syntax_.value() : compile_within(*additional, path + place_of_additional(schema), false);
  return value && *value != grammar_.nothing() ? Expr(syntax_.member(*key, *value)) : value;
}

// Other members than those that have a name and those that match two patterns; none that match no pattern are invented.
SchemaCompiler::Expr SchemaCompiler::compile_pattern_members(const ValueDict& schema, const Members& names, const std::string& path) {
  if (find(schema, "propertyNames") != nullptr)
    if (auto error = leniency_.leave_out(path + ".propertyNames", "this is not supported beside patternProperties")) return *error;
  const auto& patterns = *find(schema, "patternProperties")->get_if<ValueDict>();
  std::vector<TextLanguages::Id> taken;
  for (const auto& [name, value] : names.named) taken.push_back(languages_.text(name));
  std::vector<ExprId> options;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::string place = path + ".patternProperties." + patterns[i].first;
    const auto language = languages_.regex(patterns[i].first);
    if (!language) {
      if (auto error = leniency_.leave_out(place, language.error().message)) return *error;
      continue;
    }
    std::vector<TextLanguages::Id> others = taken;
    for (std::size_t k = 0; k < patterns.size(); ++k)
      if (const auto other = languages_.regex(patterns[k].first, true); k != i && other) others.push_back(*other);
    const Expr key = compile_text(languages_.both({*language, languages_.complement(languages_.either(std::move(others)))}));
    if (!key) {
      if (auto error = leniency_.leave_out(place, key.error().message)) return *error;
      continue;
    }
    const Expr value = compile_within(patterns[i].second, place, false);
    if (!value) return value;
    if (*value != grammar_.nothing()) options.push_back(syntax_.member(*key, *value));
  }
  return grammar_.choice(std::move(options));
}

// Keys of members that are not named: other names than those, and what propertyNames says.
SchemaCompiler::Expr SchemaCompiler::compile_keys(const ValueDict& schema, const Members& names, const std::string& path) {
  const Value* rule = find(schema, "propertyNames");
  if (rule == nullptr || *rule == Value(true)) {
    std::vector<std::string> taken(names.required.begin(), names.required.end());
    if (const Value* properties = find(schema, "properties"))
      for (const auto& [name, value] : *properties->get_if<ValueDict>()) taken.push_back(name);
    // Beside a long name none are invented.
    if (std::any_of(taken.begin(), taken.end(), [](const std::string& name) { return name.size() > kMaxExcludedName; }))
      return grammar_.nothing();
    return taken.empty() ? syntax_.string() : syntax_.string_except(taken);
  }
  if (*rule == Value(false)) return grammar_.nothing();
  // Beside properties the names that it allows may be theirs, so none are invented.
  if (!names.named.empty()) return grammar_.nothing();
  ValueDict key = *rule->get_if<ValueDict>();
  if (!types_of(key).contains(Type::kString)) return grammar_.nothing();
  std::erase_if(key, [](const auto& entry) { return entry.first == "type"; });
  key.emplace_back("type", "string");
  return compile_within(key, path + ".propertyNames", false);
}

}  // namespace braid::grammar::json
