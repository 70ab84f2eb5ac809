// Strings and numbers.
#include "grammar/json/formats.h"
#include "grammar/json/number_range.h"
#include "grammar/json/schema.h"
#include "grammar/regex.h"

#include <array>
#include <fmt/format.h>

namespace braid::grammar::json {
namespace {

// How far lengths may vary beside a pattern that has too many states otherwise.
constexpr std::array<std::uint32_t, 2> kNarrowLengths = {400, 60};

NumberBounds bounds_of(const ValueDict& schema) {
  NumberBounds bounds;
  const auto take = [&](const char* inclusive, const char* exclusive, std::optional<Value>& bound, bool& excluded) {
    const Value* with = find(schema, inclusive);
    const Value* without = find(schema, exclusive);
    const bool least = &bound == &bounds.least;
    excluded = without != nullptr && (with == nullptr || (least ? !less(*without, *with) : !less(*with, *without)));
    if (const Value* chosen = excluded ? without : with) bound = *chosen;
  };
  take("minimum", "exclusiveMinimum", bounds.least, bounds.least_excluded);
  take("maximum", "exclusiveMaximum", bounds.most, bounds.most_excluded);
  return bounds;
}

}  // namespace

// A pattern and lengths bind, and what the format says beside them is an annotation.
SchemaCompiler::Expr SchemaCompiler::compile_string(const ValueDict& schema, const std::string& path) {
  const std::uint32_t min = count_or(schema, "minLength", 0);
  const std::uint32_t max = count_or(schema, "maxLength", kUnbounded);
  if (min > max) return grammar_.nothing();
  if (const auto plain = compile_plain_pattern(schema)) return *plain;
  const auto pattern = patterns_of(schema, path);
  if (!pattern) return pattern.error();
  if (*pattern != languages_.anything()) {
    const auto of_length = [&](std::uint32_t most) {
      return languages_.both({*pattern, languages_.repeat(languages_.chars(CodePointSet::all()), min, most)});
    };
    Expr text = compile_text(of_length(max));
    for (const std::uint32_t spread : kNarrowLengths)
      if (!text && max - min > spread) text = compile_text(of_length(min + spread));
    if (text) return text;
    if (auto error = leniency_.leave_out(path + ".pattern", text.error().message)) return *error;
  }
  const Value* format = find(schema, "format");
  const auto* name = format == nullptr ? nullptr : format->get_if<std::string>();
  const auto known = name == nullptr ? std::nullopt : format_pattern(*name);
  return known && min == 0 && max == kUnbounded ? compile_format(*known) : syntax_.string_of_length(min, max);
}

SchemaCompiler::Expr SchemaCompiler::compile_format(std::string_view pattern) {
  RegexOptions options;
  options.character = [this](const CodePointSet& set) { return syntax_.string_character(set); };
  const auto content = parse_regex(pattern, grammar_, options);
  return content ? Expr(syntax_.quoted(*content)) : content;
}

std::optional<ExprId> SchemaCompiler::compile_plain_pattern(const ValueDict& schema) {
  const Value* pattern = find(schema, "pattern");
  const auto* text = pattern == nullptr ? nullptr : pattern->get_if<std::string>();
  if (text == nullptr || count_or(schema, "minLength", 0) > 0 || find(schema, "maxLength") != nullptr) return std::nullopt;
  RegexOptions options;
  options.character = [this](const CodePointSet& set) { return syntax_.string_character(set); };
  options.whole = false;
  options.counts_from_zero = false;
  const auto content = parse_regex(*text, grammar_, options);
  return content ? std::optional(syntax_.quoted(*content)) : std::nullopt;
}

Result<TextLanguages::Id> SchemaCompiler::patterns_of(const ValueDict& schema, const std::string& path) {
  const Value* pattern = find(schema, "pattern");
  if (pattern == nullptr) return languages_.anything();
  const auto* list = pattern->get_if<ValueList>();
  TextLanguages::Id all = languages_.anything();
  for (const Value& item : list != nullptr ? *list : ValueList{*pattern}) {
    const auto one = languages_.regex(*item.get_if<std::string>());
    if (one) {
      all = languages_.both({all, *one});
    } else if (auto error = leniency_.leave_out(path + ".pattern", one.error().message)) {
      return *error;
    }
  }
  return all;
}

SchemaCompiler::Expr SchemaCompiler::compile_text(TextLanguages::Id text) {
  const auto content = languages_.expression(text, grammar_, [this](const CodePointSet& set) { return syntax_.string_character(set); });
  return content ? Expr(syntax_.quoted(*content)) : content;
}

SchemaCompiler::Expr SchemaCompiler::compile_number(const ValueDict& schema, bool whole, const std::string& path) {
  const NumberBounds bounds = bounds_of(schema);
  if (const Value* divisor = find(schema, "multipleOf")) {
    const auto multiples = multiples_within(grammar_, bounds, *divisor, whole);
    if (multiples) return *multiples;
    if (auto error = leniency_.leave_out(path + ".multipleOf", multiples.error().message)) return *error;
  }
  if (!bounds.any()) return whole ? syntax_.integer() : syntax_.number();
  return whole ? integers_within(grammar_, bounds) : numbers_within(grammar_, bounds);
}

}  // namespace braid::grammar::json
