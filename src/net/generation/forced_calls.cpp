#include "net/generation/forced_calls.h"

#include <fmt/format.h>
#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

constexpr std::int32_t kMaxFurtherCalls = 31;  // a small model may not find an end of its own

Spec literal(std::string text, const std::string& path) { return {Spec::Literal{std::move(text)}, path}; }

Spec sequence(std::vector<Spec> parts, const std::string& path) { return {Spec::Sequence{std::move(parts)}, path}; }

Spec arguments_of(const ToolFunction& function, bool schemas) {
  const auto* schema = function.parameters.get_if<ValueDict>();
  if (!schemas || schema == nullptr || schema->empty()) return {Spec::JsonObject{}, function.path};
  ValueDict object = *schema;
  if (function.parameters.find("type") == nullptr) object.emplace_back("type", "object");
  return {Spec::JsonSchema{std::move(object), function.strict}, function.path};
}

// One call of `function` without what surrounds the list of calls.
Spec call_of(const ToolFunction& function, const CallSyntax& syntax, bool schemas) {
  std::string before = fmt::format(R"({{"name": "{}", "{}": )", function.name, syntax.arguments_key);
  std::string after = "}";
  if (syntax.form == CallSyntax::Form::kNamed && !syntax.list) {
    before = syntax.begin.front() + function.name + syntax.name_end.front();
    after = syntax.end.empty() ? "" : syntax.end.front();
  } else if (!syntax.list && !syntax.bare) {
    before = syntax.begin.front() + "\n" + before;
    after += "\n" + syntax.end.front();
  }
  std::vector<Spec> parts;
  parts.push_back(literal(std::move(before), function.path));
  parts.push_back(arguments_of(function, schemas));
  if (!after.empty()) parts.push_back(literal(std::move(after), function.path));
  return sequence(std::move(parts), function.path);
}

std::string separator_of(const CallSyntax& syntax) {
  if (syntax.list) return ", ";
  if (syntax.form == CallSyntax::Form::kNamed) return "";
  return syntax.bare ? "; " : "\n";
}

}  // namespace

ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& answer, bool schemas) {
  const CallSyntax& syntax = *answer.calls;
  const std::string path = "tools";
  std::vector<Spec> options;
  for (const ToolFunction& function : rules.functions) options.push_back(call_of(function, syntax, schemas));
  const Spec call = {Spec::Alternatives{std::move(options)}, path};
  const std::string separator = separator_of(syntax);
  std::vector<Spec> parts;
  if (!answer.reasoning.open.empty() && !answer.begins_in_reasoning) {
    std::vector<Spec> thought = {
        literal(answer.reasoning.open, path), {Spec::FreeUntil{answer.reasoning.close}, path}, literal("\n\n", path)};
    parts.push_back({Spec::Repeat{{sequence(std::move(thought), path)}, 0, 1}, path});
  }
  if (syntax.list) parts.push_back(literal(syntax.begin.front() + "[", path));
  parts.push_back(call);
  if (rules.parallel) {
    std::vector<Spec> further;
    if (!separator.empty()) further.push_back(literal(separator, path));
    further.push_back(call);
    parts.push_back({Spec::Repeat{{sequence(std::move(further), path)}, 0, kMaxFurtherCalls}, path});
  }
  if (syntax.list) parts.push_back(literal("]" + (syntax.end.empty() ? std::string() : syntax.end.front()), path));
  return after_reasoning(answer, sequence(std::move(parts), path));
}

ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer) {
  if (!syntax.begins_in_reasoning) return answer;
  std::string path = answer.path;
  std::vector<Spec> parts = {{Spec::FreeUntil{syntax.reasoning.close}, path}, literal("\n\n", path)};
  parts.push_back(std::move(answer));
  return sequence(std::move(parts), path);
}

}  // namespace braid::net
