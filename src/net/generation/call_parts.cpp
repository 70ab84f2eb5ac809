#include "net/generation/call_parts.h"

#include <fmt/format.h>
#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

// One call of `function` without what surrounds the list of calls. `opened`: the marker that begins it is there already.
Spec call_of(const ToolFunction& function, const CallSyntax& syntax, bool opened) {
  std::string before = fmt::format(R"({{"name": "{}", "{}": )", function.name, syntax.arguments_key);
  std::string after = "}";
  if (syntax.form == CallSyntax::Form::kNamed && !syntax.list) {
    before = (opened ? "" : syntax.begin.front()) + function.name + syntax.name_end.front();
    after = syntax.end.empty() ? "" : syntax.end.front();
  } else if (!syntax.list && !syntax.bare) {
    before = (opened ? "" : syntax.begin.front()) + "\n" + before;
    after += "\n" + syntax.end.front();
  }
  std::vector<Spec> parts;
  if (opened && syntax.form == CallSyntax::Form::kNamed && !syntax.list && syntax.name_end.size() > 1) {
    std::vector<Spec> ends;  // as the model likes it
    for (const std::string& end : syntax.name_end) ends.push_back(literal(end, function.path));
    parts.push_back(literal(function.name, function.path));
    parts.push_back({Spec::Regex{" ?"}, function.path});
    parts.push_back({Spec::Alternatives{std::move(ends)}, function.path});
  } else {
    parts.push_back(literal(std::move(before), function.path));
  }
  parts.push_back(arguments_of(function));
  if (!after.empty()) parts.push_back(literal(std::move(after), function.path));
  return sequence(std::move(parts), function.path);
}

Spec any_call(const ToolRules& rules, const CallSyntax& syntax, bool opened) {
  std::vector<Spec> options;
  for (const ToolFunction& function : rules.functions) options.push_back(call_of(function, syntax, opened));
  return {Spec::Alternatives{std::move(options)}, kToolsPath};
}

std::string separator_of(const CallSyntax& syntax) {
  if (syntax.list) return ", ";
  if (syntax.form == CallSyntax::Form::kNamed) return "";
  return syntax.bare ? "; " : "\n";
}

}  // namespace

Spec literal(std::string text, const std::string& path) { return {Spec::Literal{std::move(text)}, path}; }

Spec sequence(std::vector<Spec> parts, const std::string& path) { return {Spec::Sequence{std::move(parts)}, path}; }

Spec arguments_of(const ToolFunction& function) {
  if (function.format) return {Spec::TextMember{kCustomInput, function.format->text, function.format->is_regex}, function.format->path};
  const auto* schema = function.parameters.get_if<ValueDict>();
  if (schema == nullptr || schema->empty()) return {Spec::JsonObject{}, function.path};
  return {Spec::JsonSchema{function.parameters, function.strict, true}, function.path};
}

// Calls and what stands between them; `opened` as above, of a list and its first call.
void append_calls(std::vector<Spec>& parts, const ToolRules& rules, const CallSyntax& syntax, bool opened) {
  const std::string separator = separator_of(syntax);
  if (syntax.list) parts.push_back(literal((opened ? "" : syntax.begin.front()) + "[", kToolsPath));
  parts.push_back(any_call(rules, syntax, opened));
  if (rules.parallel && !(opened && !syntax.list)) {
    std::vector<Spec> further;
    if (!separator.empty()) further.push_back(literal(separator, kToolsPath));
    further.push_back(any_call(rules, syntax, false));
    parts.push_back({Spec::Repeat{{sequence(std::move(further), kToolsPath)}, 0, kMaxFurtherCalls}, kToolsPath});
  }
  if (syntax.list) parts.push_back(literal("]" + (syntax.end.empty() ? std::string() : syntax.end.front()), kToolsPath));
}

}  // namespace braid::net
