#include "grammar/json/schema.h"

#include "grammar/json/merge.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::grammar::json {
namespace {

constexpr std::size_t kMaxJoined = 256;  // schemas of one allOf or oneOf: comparing and merging them takes the square of that

constexpr std::size_t kMaxDepth = 128;  // of schemas within schemas, references followed
constexpr std::size_t kMaxSchemas = 20'000;

ValueDict without(const ValueDict& schema, std::string_view keyword) {
  ValueDict out;
  std::copy_if(schema.begin(), schema.end(), std::back_inserter(out), [&](const auto& member) { return member.first != keyword; });
  return out;
}

constexpr const char* kBackToItself = "the reference leads back to itself";

std::string nowhere(const std::string& reference) {
  return reference.starts_with("#") ? fmt::format("there is no \"{}\"", reference) : "only references within the schema are supported";
}

const std::string* only_reference(const Value& schema) {
  const auto* dict = schema.get_if<ValueDict>();
  const Value* reference = dict == nullptr ? nullptr : find(*dict, "$ref");
  if (reference == nullptr || has_constraints(without(*dict, "$ref"))) return nullptr;
  return reference->get_if<std::string>();
}

}  // namespace

SchemaCompiler::Expr SchemaCompiler::compile(const Value& schema, const std::string& path) {
  if (const auto* flag = schema.get_if<bool>()) return *flag ? syntax_.value() : grammar_.nothing();
  const auto* dict = schema.get_if<ValueDict>();
  std::optional<Error> error;
  if (dict == nullptr) error = leniency_.leave_out(path, "a schema is an object, true or false");
  if (depth_ >= kMaxDepth) error = leniency_.leave_out(path, fmt::format("the schema nests deeper than {} levels", kMaxDepth));
  if (error) return *error;
  if (dict == nullptr || depth_ >= kMaxDepth) return syntax_.value();
  if (++schemas_ > kMaxSchemas) return refused(path, fmt::format("the schema consists of more than {} schemas", kMaxSchemas));
  ++depth_;
  Expr expr = compile_keywords(*dict, path);
  --depth_;
  return expr;
}

SchemaCompiler::Expr SchemaCompiler::compile_within(const Value& schema, const std::string& path, bool needed) {
  std::set<std::string> open = std::exchange(open_references_, {});
  dispensable_ += needed ? 0 : 1;
  Expr expr = compile(schema, path);
  dispensable_ -= needed ? 0 : 1;
  open_references_ = std::move(open);
  if (!expr || !needed || dispensable_ > 0) return expr;
  if (!barren_.contains(path)) {
    demands_.push_back({*expr, path});
    return expr;
  }
  if (auto error = leniency_.leave_out(path, "no finite text satisfies it, and it must be there")) return *error;
  return syntax_.value();
}

SchemaCompiler::Expr SchemaCompiler::compile_objects() {
  const auto* written = root_.get_if<ValueDict>();
  auto schema = written == nullptr ? Result<ValueDict>(ValueDict{}) : usable_keywords(*written, path_, leniency_);
  if (!schema) return schema.error();
  if (!types_of(*schema).contains(Type::kObject) && find(*schema, "type") != nullptr)
    if (auto error = leniency_.leave_out(path_ + ".type", "must be \"object\"")) return *error;
  ValueDict objects = without(*schema, "type");
  objects.emplace_back("type", "object");
  return compile(objects, path_);
}

SchemaCompiler::Expr SchemaCompiler::compile_keywords(const ValueDict& written, const std::string& path) {
  const auto usable = usable_keywords(written, path, leniency_);
  if (!usable) return usable.error();
  const ValueDict& schema = *usable;
  if (const Value* reference = find(schema, "$ref")) {
    const std::string& name = *reference->get_if<std::string>();
    const ValueDict siblings = without(schema, "$ref");
    if (!has_constraints(siblings)) return compile_reference(name, path);
    const Value* target = target_of(name);
    if (target == nullptr || open_references_.contains(name)) {
      if (auto error = leniency_.leave_out(path + ".$ref", target == nullptr ? nowhere(name) : kBackToItself)) return *error;
      return compile(siblings, path);
    }
    const auto merged = merge(siblings, *target, path);
    if (!merged) return merged.error();
    open_references_.insert(name);
    Expr expr = compile(*merged, path);
    open_references_.erase(name);
    return expr;
  }
  if (find(schema, "not") != nullptr) return compile_not(schema, path);
  if (find(schema, "allOf") != nullptr) return compile_all_of(schema, path);
  if (find(schema, "anyOf") != nullptr) return compile_branches(schema, "anyOf", path);
  if (find(schema, "oneOf") != nullptr) return compile_branches(schema, "oneOf", path);
  if (find(schema, "enum") != nullptr || find(schema, "const") != nullptr) return compile_values(schema, path);

  const Types types = types_of(schema);
  std::vector<ExprId> options;
  for (const Type type : types) {
    if (type == Type::kInteger && types.contains(Type::kNumber)) continue;
    dispensable_ += types.size() > 1 ? 1 : 0;
    const Expr expr = compile_type(type, schema, path);
    dispensable_ -= types.size() > 1 ? 1 : 0;
    if (!expr) return expr;
    options.push_back(*expr);
  }
  if (types.size() == 7 && !has_constraints(without(schema, "type"))) return syntax_.value();
  return grammar_.choice(std::move(options));
}

SchemaCompiler::Expr SchemaCompiler::compile_type(Type type, const ValueDict& schema, const std::string& path) {
  switch (type) {
    case Type::kObject:
      return compile_object(schema, path);
    case Type::kArray:
      return compile_array(schema, path);
    case Type::kString:
      return compile_string(schema, path);
    case Type::kNumber:
      return compile_number(schema, false, path);
    case Type::kInteger:
      return compile_number(schema, true, path);
    case Type::kBoolean:
      return syntax_.boolean();
    case Type::kNull:
      break;
  }
  return syntax_.null();
}

// What libraries write for a value that there is not: {"not": {}}.
SchemaCompiler::Expr SchemaCompiler::compile_not(const ValueDict& schema, const std::string& path) {
  const Value& negated = *find(schema, "not");
  const auto* dict = negated.get_if<ValueDict>();
  if (negated == Value(true) || (dict != nullptr && !has_constraints(*dict))) return grammar_.nothing();
  if (negated != Value(false))
    if (auto error = leniency_.leave_out(path + ".not", "this schema keyword is not supported")) return *error;
  return compile(without(schema, "not"), path);
}

SchemaCompiler::Expr SchemaCompiler::compile_all_of(const ValueDict& schema, const std::string& path) {
  const auto& parts = *find(schema, "allOf")->get_if<ValueList>();
  const ValueDict siblings = without(schema, "allOf");
  if (parts.size() == 1 && !has_constraints(siblings)) return compile(parts.front(), path + ".allOf[0]");
  if (parts.size() > kMaxJoined) {
    if (auto error = leniency_.leave_out(path + ".allOf", fmt::format("{} schemas can be joined", kMaxJoined))) return *error;
    return compile(siblings, path);
  }
  Value merged = siblings;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto next = merge(merged, parts[i], fmt::format("{}.allOf[{}]", path, i));
    if (!next) return next.error();
    merged = std::move(*next);
  }
  return compile(merged, path);
}

SchemaCompiler::Expr SchemaCompiler::compile_branches(const ValueDict& schema, std::string_view keyword, const std::string& path) {
  const auto& branches = *find(schema, keyword)->get_if<ValueList>();
  const ValueDict siblings = without(schema, keyword);
  std::vector<const Value*> resolved;
  std::vector<ExprId> options;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::string place = fmt::format("{}.{}[{}]", path, keyword, i);
    resolved.push_back(&resolve(branches[i]));
    Value branch = branches[i];
    if (has_constraints(siblings)) {
      auto merged = merge(siblings, branch, place);
      if (!merged) return merged.error();
      branch = std::move(*merged);
    }
    dispensable_ += branches.size() > 1 ? 1 : 0;
    const Expr expr = compile(branch, place);
    dispensable_ -= branches.size() > 1 ? 1 : 0;
    if (!expr) return expr;
    options.push_back(*expr);
  }
  if (keyword == "oneOf")
    if (auto error = tell_apart(resolved, path + ".oneOf")) return *error;
  const auto [known, fresh] = unions_.try_emplace(options, 0);
  if (fresh) known->second = grammar_.choice(std::move(options));
  return known->second;
}

std::optional<Error> SchemaCompiler::tell_apart(const std::vector<const Value*>& branches, const std::string& path) {
  if (branches.size() > kMaxJoined) return leniency_.leave_out(path, fmt::format("{} schemas can be told apart; use anyOf", kMaxJoined));
  for (std::size_t i = 0; i < branches.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (!provably_disjoint(*branches[k], *branches[i]))
        return leniency_.leave_out(fmt::format("{}[{}]", path, i),
                                   fmt::format("that no value satisfies both this and oneOf[{}] cannot be shown; use anyOf", k));
  return std::nullopt;
}

// Of the keywords beside enum and const those about single texts and numbers are tested on each value.
SchemaCompiler::Expr SchemaCompiler::compile_values(const ValueDict& schema, const std::string& path) {
  static const std::set<std::string_view> kTested = {"enum",    "const",   "type",    "format",           "minLength",       "maxLength",
                                                     "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
  for (const auto& [name, value] : schema)
    if (restricts(name) && !kTested.contains(name))
      if (auto error = leniency_.leave_out(path + "." + name, "this keyword is not supported beside enum or const")) return *error;
  const auto pattern = patterns_of(schema, path);
  if (!pattern) return pattern.error();
  const Value* constant = find(schema, "const");
  const Value* list = find(schema, "enum");
  const Types types = find(schema, "type") != nullptr ? types_of(schema) : types_of({});
  const ValueList values = list == nullptr ? ValueList{*constant} : *list->get_if<ValueList>();
  std::vector<ExprId> options;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* text = values[i].get_if<std::string>();
    if (!within_bounds(schema, values[i]) || (text != nullptr && !languages_.matches(*pattern, *text))) continue;
    if (!has_type(types, values[i]) || (constant != nullptr && !same_value(*constant, values[i]))) continue;
    options.push_back(syntax_.constant(values[i]));
  }
  if (!options.empty()) return grammar_.choice(std::move(options));
  const char* name = list == nullptr ? "const" : "enum";
  if (auto error = leniency_.leave_out(fmt::format("{}.{}", path, name), "no value of it satisfies the rest of the schema")) return *error;
  return compile(without(schema, name), path);
}

SchemaCompiler::Expr SchemaCompiler::compile_reference(const std::string& reference, const std::string& path) {
  const bool goes_back = open_references_.contains(reference);
  if (const auto known = references_.find(reference); known != references_.end() && !goes_back) return known->second;
  const auto target = goes_back ? std::nullopt : targets_.find(reference);
  if (!target) {
    if (auto error = leniency_.leave_out(path + ".$ref", goes_back ? kBackToItself : nowhere(reference))) return *error;
    return syntax_.value();
  }
  open_references_.insert(reference);
  Expr expr = compile_target(reference, *target);
  open_references_.erase(reference);
  return expr;
}

SchemaCompiler::Expr SchemaCompiler::compile_target(const std::string& reference, const References::Target& target) {
  const RuleId rule = grammar_.declare(reference);
  const ExprId call = grammar_.call(rule);
  references_.emplace(reference, call);
  const Expr body = compile(*target.schema, target.place);
  if (!body) return body;
  grammar_.define(rule, *body);
  return call;
}

const Value* SchemaCompiler::target_of(const std::string& reference) const {
  const auto target = targets_.find(reference);
  return target ? target->schema : nullptr;
}

const Value& SchemaCompiler::resolve(const Value& schema) const {
  const Value* value = &schema;
  for (std::size_t steps = 0; steps < kMaxDepth; ++steps) {
    const std::string* reference = only_reference(*value);
    const Value* target = reference == nullptr ? nullptr : target_of(*reference);
    if (target == nullptr) break;
    value = target;
  }
  return *value;
}

Result<Value> SchemaCompiler::expanded(const Value& schema, const std::string& path, std::size_t steps) {
  const auto* written = schema.get_if<ValueDict>();
  if (written == nullptr) return schema;
  const auto dict = usable_keywords(*written, path, leniency_);
  if (!dict) return dict.error();
  const Value* reference = find(*dict, "$ref");
  if (reference == nullptr) return Value(*dict);
  const auto& name = *reference->get_if<std::string>();
  const Value* target = target_of(name);
  if (target == nullptr || steps >= kMaxDepth) {
    if (auto error = leniency_.leave_out(path + ".$ref", target == nullptr ? nowhere(name) : kBackToItself)) return *error;
    return Value(without(*dict, "$ref"));
  }
  const auto rest = expanded(*target, path, steps + 1);
  if (!rest || rest->get_if<ValueDict>() == nullptr) return rest;
  return merge_schemas(without(*dict, "$ref"), *rest->get_if<ValueDict>(), path, leniency_);
}

Result<Value> SchemaCompiler::merge(const Value& a, const Value& b, const std::string& path) {
  const auto x = expanded(a, path, 0);
  if (!x) return x.error();
  const auto y = expanded(b, path, 0);
  if (!y) return y.error();
  if (*x == Value(false) || *y == Value(false)) return Value(false);
  const auto* first = x->get_if<ValueDict>();
  const auto* second = y->get_if<ValueDict>();
  if (first == nullptr) return *y;
  if (second == nullptr) return *x;
  return merge_schemas(*first, *second, path, leniency_);
}

}  // namespace braid::grammar::json
