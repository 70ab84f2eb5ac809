// Arrays and objects.
#include "grammar/json/schema.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMaxProperties = 1000;   // of one object
constexpr std::size_t kMaxExcludedName = 256;  // bytes of a property's name that additional ones must differ from

}  // namespace

SchemaCompiler::Expr SchemaCompiler::compile_array(const ValueDict& schema, const std::string& path) {
  std::uint32_t min = count_or(schema, "minItems", 0);
  const std::uint32_t max = count_or(schema, "maxItems", kUnbounded);
  if (const Value* unique = find(schema, "uniqueItems"); unique != nullptr && *unique == Value(true) && max > 1)
    return refused(path + ".uniqueItems", "this schema keyword is not supported");

  std::vector<Member> first;
  const Value* prefix = find(schema, "prefixItems");
  if (prefix != nullptr) {
    const auto& schemas = *prefix->get_if<ValueList>();
    for (std::size_t i = 0; i < schemas.size() && i < max; ++i) {
      const Expr item = compile(schemas[i], fmt::format("{}.prefixItems[{}]", path, i));
      if (!item) return item;
      first.push_back({*item, i < min});
    }
  }
  const auto placed = static_cast<std::uint32_t>(first.size());
  min -= std::min(min, placed);
  std::uint32_t more = max == kUnbounded ? kUnbounded : max - placed;
  const Value* items = find(schema, "items");
  if (items == nullptr && prefix != nullptr && min == 0) more = 0;  // none are invented
  ExprId rest = grammar_.nothing();
  if (more > 0) {
    const Expr item = items == nullptr ? syntax_.value() : compile(*items, path + ".items");
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
  const Value* properties = find(schema, "properties");
  ValueDict named = properties == nullptr ? ValueDict{} : *properties->get_if<ValueDict>();
  std::vector<std::string> required;
  if (const Value* names = find(schema, "required"))
    for (const Value& name : *names->get_if<ValueList>()) required.push_back(*name.get_if<std::string>());
  if (find(schema, "propertyNames") != nullptr && (!named.empty() || !required.empty()))
    return refused(path + ".propertyNames", "this is not supported beside properties or required");
  const Value* additional = find(schema, "additionalProperties");
  if (named.size() + required.size() > 2 * kMaxProperties)
    return refused(path + ".required", fmt::format("an object may have {} properties", kMaxProperties));
  for (const std::string& name : required) {
    if (find(named, name) != nullptr) continue;
    if (find(schema, "patternProperties") != nullptr)
      return refused(path + ".required", fmt::format("\"{}\" is not among the properties", name));
    named.emplace_back(name, additional == nullptr ? Value(true) : *additional);
  }
  if (named.size() > kMaxProperties) return refused(path + ".properties", fmt::format("an object may have {} properties", kMaxProperties));

  std::vector<Member> list;
  std::uint32_t needed = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const auto& [name, value] = named[i];
    if (find(named, name) != &value) continue;  // a key that was given twice
    const Expr expr = compile(value, path + ".properties." + name);
    if (!expr) return expr;
    const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
    needed += is_required ? 1 : 0;
    list.push_back({syntax_.member(grammar_.bytes(quote(name)), *expr), is_required});
  }

  const Expr other = compile_other_members(schema, path);
  if (!other) return other;
  const bool open = *other != grammar_.nothing();
  const std::uint32_t min = count_or(schema, "minProperties", 0);
  const std::uint32_t max = count_or(schema, "maxProperties", kUnbounded);
  // Members that a schema does not name may repeat a key, so more than one of them is not known to be distinct.
  if (min > needed && !(list.empty() && open && min == 1))
    return refused(path + ".minProperties", "more than the required properties are not supported");
  if (max < list.size() + (open ? 1 : 0) && !(list.empty() && open))
    return refused(path + ".maxProperties", "fewer than the properties named are not supported");
  const std::uint32_t most = max == kUnbounded ? kUnbounded : max - static_cast<std::uint32_t>(std::min<std::size_t>(max, list.size()));
  return members(list, *other, list.empty() ? min : 0, open ? most : 0);
}

// Members in order, each with a comma before it unless it is the first that is there.
ExprId SchemaCompiler::members(const std::vector<Member>& named, ExprId other, std::uint32_t other_min, std::uint32_t other_max) {
  const ExprId more = other_max == 0 ? grammar_.empty() : grammar_.repeat(grammar_.sequence({syntax_.comma(), other}), 0, other_max);
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

SchemaCompiler::Expr SchemaCompiler::compile_other_members(const ValueDict& schema, const std::string& path) {
  const Value* properties = find(schema, "properties");
  const Value* additional = find(schema, "additionalProperties");
  const Value* patterns = find(schema, "patternProperties");
  const bool names_some = properties != nullptr && !properties->get_if<ValueDict>()->empty();
  if (patterns != nullptr) {
    if (names_some) return refused(path + ".patternProperties", "this is not supported beside properties");
    if (additional != nullptr && *additional != Value(false))
      return refused(path + ".additionalProperties", "only false is supported beside patternProperties");
    const auto& schemas = *patterns->get_if<ValueDict>();
    if (schemas.size() > 1) return refused(path + ".patternProperties", "more than one pattern is not supported");
    if (find(schema, "propertyNames") != nullptr) return refused(path + ".propertyNames", "this is not supported beside patternProperties");
    if (schemas.empty()) return grammar_.nothing();
    const std::string place = path + ".patternProperties." + schemas.front().first;
    const Expr key = compile_pattern({{"pattern", schemas.front().first}}, place);
    if (!key) return key;
    const Expr value = compile(schemas.front().second, place);
    return value ? Expr(syntax_.member(*key, *value)) : value;
  }
  const bool invented = additional == nullptr && (properties != nullptr || find(schema, "required") != nullptr);
  if (invented || (additional != nullptr && *additional == Value(false))) return grammar_.nothing();
  const Expr key = compile_keys(schema, path);
  if (!key) return key;
  const Expr value = additional == nullptr ? syntax_.value() : compile(*additional, path + ".additionalProperties");
  return value ? Expr(syntax_.member(*key, *value)) : value;
}

// Keys of members that are not named: other names than those, and what propertyNames says.
SchemaCompiler::Expr SchemaCompiler::compile_keys(const ValueDict& schema, const std::string& path) {
  std::vector<std::string> taken;
  if (const Value* properties = find(schema, "properties"))
    for (const auto& [name, value] : *properties->get_if<ValueDict>()) taken.push_back(name);
  if (const Value* names = find(schema, "required"))
    for (const Value& name : *names->get_if<ValueList>()) taken.push_back(*name.get_if<std::string>());
  const Value* rule = find(schema, "propertyNames");
  if (rule == nullptr) {
    for (const std::string& name : taken)
      if (name.size() > kMaxExcludedName)
        return refused(path + ".properties",
                       fmt::format("names above {} bytes are not supported beside additionalProperties", kMaxExcludedName));
    return taken.empty() ? syntax_.string() : syntax_.string_except(taken);
  }
  if (*rule == Value(false)) return grammar_.nothing();
  ValueDict key = rule->get_if<ValueDict>() != nullptr ? *rule->get_if<ValueDict>() : ValueDict{};
  if (!types_of(key).contains(Type::kString)) return grammar_.nothing();
  std::erase_if(key, [](const auto& entry) { return entry.first == "type"; });
  key.emplace_back("type", "string");
  return compile(key, path + ".propertyNames");
}

}  // namespace braid::grammar::json
