// Strings and numbers.
#include "grammar/json/formats.h"
#include "grammar/json/number_range.h"
#include "grammar/json/schema.h"
#include "grammar/regex.h"

#include <fmt/format.h>

namespace braid::grammar::json {
namespace {

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

SchemaCompiler::Expr SchemaCompiler::compile_string(const ValueDict& schema, const std::string& path) {
  if (find(schema, "pattern") != nullptr || find(schema, "format") != nullptr) return compile_pattern(schema, path);
  const std::uint32_t min = count_or(schema, "minLength", 0);
  const std::uint32_t max = count_or(schema, "maxLength", kUnbounded);
  return min <= max ? syntax_.string_of_length(min, max) : grammar_.nothing();
}

SchemaCompiler::Expr SchemaCompiler::compile_pattern(const ValueDict& schema, const std::string& path) {
  const bool both = find(schema, "pattern") != nullptr && find(schema, "format") != nullptr;
  const std::string keyword = find(schema, "pattern") != nullptr ? "pattern" : "format";
  if (both) return refused(path + ".format", "format beside pattern is not supported");
  for (const char* length : {"minLength", "maxLength"})
    if (find(schema, length) != nullptr && count_or(schema, length, 0) != (length[1] == 'i' ? 0U : kUnbounded))
      return refused(path + "." + length, fmt::format("a length beside {} is not supported; the pattern can say it", keyword));

  RegexOptions options;
  options.character = [this](const CodePointSet& set) { return syntax_.string_character(set); };
  std::string_view pattern = *find(schema, keyword)->get_if<std::string>();
  if (keyword == "format") {
    const auto known = format_pattern(pattern);
    if (!known) return refused(path + ".format", fmt::format("the format \"{}\" is not supported", pattern));
    pattern = *known;
  } else {
    options.whole = false;
    options.counts_from_zero = false;
  }
  const auto content = parse_regex(pattern, grammar_, options);
  if (!content) return refused(path + "." + keyword, content.error().message);
  return syntax_.quoted(*content);
}

SchemaCompiler::Expr SchemaCompiler::compile_number(const ValueDict& schema, bool whole, const std::string& path) {
  const NumberBounds bounds = bounds_of(schema);
  if (!bounds.any()) return whole ? syntax_.integer() : syntax_.number();
  if (whole) return integers_within(grammar_, bounds);
  const auto expr = numbers_within(grammar_, bounds);
  if (!expr) return refused(path + (bounds.least ? ".minimum" : ".maximum"), expr.error().message);
  return *expr;
}

}  // namespace braid::grammar::json
