#include "net/generation/forced_calls.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

const std::string kToolsPath = "tools";
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

// One call of `function` without what surrounds the list of calls. `opened`: the marker that begins it is there already.
Spec call_of(const ToolFunction& function, const CallSyntax& syntax, bool schemas, bool opened) {
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
  parts.push_back(arguments_of(function, schemas));
  if (!after.empty()) parts.push_back(literal(std::move(after), function.path));
  return sequence(std::move(parts), function.path);
}

Spec any_call(const ToolRules& rules, const CallSyntax& syntax, bool schemas, bool opened) {
  std::vector<Spec> options;
  for (const ToolFunction& function : rules.functions) options.push_back(call_of(function, syntax, schemas, opened));
  return {Spec::Alternatives{std::move(options)}, kToolsPath};
}

std::string separator_of(const CallSyntax& syntax) {
  if (syntax.list) return ", ";
  if (syntax.form == CallSyntax::Form::kNamed) return "";
  return syntax.bare ? "; " : "\n";
}

// Calls and what stands between them; `opened` as above, of a list and its first call.
void append_calls(std::vector<Spec>& parts, const ToolRules& rules, const CallSyntax& syntax, bool schemas, bool opened) {
  const std::string separator = separator_of(syntax);
  if (syntax.list) parts.push_back(literal((opened ? "" : syntax.begin.front()) + "[", kToolsPath));
  parts.push_back(any_call(rules, syntax, schemas, opened));
  if (rules.parallel && !(opened && !syntax.list)) {
    std::vector<Spec> further;
    if (!separator.empty()) further.push_back(literal(separator, kToolsPath));
    further.push_back(any_call(rules, syntax, schemas, false));
    parts.push_back({Spec::Repeat{{sequence(std::move(further), kToolsPath)}, 0, kMaxFurtherCalls}, kToolsPath});
  }
  if (syntax.list) parts.push_back(literal("]" + (syntax.end.empty() ? std::string() : syntax.end.front()), kToolsPath));
}

// The marker that all others end with, whichever the model writes; null: there is none.
const std::string* common_end(const std::vector<std::string>& markers) {
  for (const std::string& marker : markers)
    if (std::all_of(markers.begin(), markers.end(), [&marker](const std::string& other) { return other.ends_with(marker); }))
      return &marker;
  return nullptr;
}

// A model may think first, also where the prompt has not begun it.
Spec after_any_reasoning(const AnswerSyntax& answer, std::vector<Spec> parts) {
  if (!answer.reasoning.open.empty() && !answer.begins_in_reasoning) {
    std::vector<Spec> thought = {
        literal(answer.reasoning.open, kToolsPath), {Spec::FreeUntil{answer.reasoning.close}, kToolsPath}, literal("\n\n", kToolsPath)};
    parts.insert(parts.begin(), {Spec::Repeat{{sequence(std::move(thought), kToolsPath)}, 0, 1}, kToolsPath});
  }
  return after_reasoning(answer, sequence(std::move(parts), kToolsPath));
}

}  // namespace

ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& answer, bool schemas) {
  std::vector<Spec> parts;
  append_calls(parts, rules, *answer.calls, schemas, false);
  return after_any_reasoning(answer, std::move(parts));
}

ConstraintSpec calls_or(const ToolRules& rules, const AnswerSyntax& answer, ConstraintSpec text, bool schemas) {
  std::vector<Spec> calls;
  append_calls(calls, rules, *answer.calls, schemas, false);
  std::vector<Spec> options;
  options.push_back(sequence(std::move(calls), kToolsPath));
  options.push_back(std::move(text));
  std::vector<Spec> parts;
  parts.push_back({Spec::Alternatives{std::move(options)}, kToolsPath});
  return after_any_reasoning(answer, std::move(parts));
}

std::optional<ConstraintSpec> strict_calls(const ToolRules& rules, const AnswerSyntax& answer, bool schemas) {
  const CallSyntax& syntax = *answer.calls;
  const bool strict = std::any_of(rules.functions.begin(), rules.functions.end(), [](const ToolFunction& one) { return one.strict; });
  if (!strict || syntax.bare) return std::nullopt;
  const std::string* shortest = common_end(syntax.begin);
  if (shortest == nullptr) return std::nullopt;
  const std::string& marker = *shortest;
  std::vector<Spec> call = {{Spec::FreeUntil{marker}, kToolsPath}};
  append_calls(call, rules, syntax, schemas, true);
  std::vector<Spec> parts;
  parts.push_back({Spec::Repeat{{sequence(std::move(call), kToolsPath)}, 0, rules.parallel ? -1 : 1}, kToolsPath});
  parts.push_back({Spec::FreeWithout{marker}, kToolsPath});
  ConstraintSpec spoken = sequence(std::move(parts), kToolsPath);
  const bool thinks = !answer.reasoning.open.empty() || answer.begins_in_reasoning;
  if (!thinks) return spoken;
  // Within its thoughts a marker means nothing. They may also not come to an end.
  const std::string& close = answer.reasoning.close;
  std::vector<Spec> begin;
  if (!answer.begins_in_reasoning) begin.push_back(literal(answer.reasoning.open, kToolsPath));
  std::vector<Spec> ended = begin;
  ended.push_back({Spec::FreeUntil{close}, kToolsPath});
  ended.push_back(spoken);
  std::vector<Spec> unended = begin;
  unended.push_back({Spec::FreeWithout{close}, kToolsPath});
  std::vector<Spec> options = {sequence(std::move(ended), kToolsPath), sequence(std::move(unended), kToolsPath)};
  if (!answer.begins_in_reasoning) options.push_back(std::move(spoken));
  return ConstraintSpec{Spec::Alternatives{std::move(options)}, kToolsPath};
}

ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer) {
  if (!syntax.begins_in_reasoning) return answer;
  std::string path = answer.path;
  std::vector<Spec> parts = {{Spec::FreeUntil{syntax.reasoning.close}, path}, literal("\n\n", path)};
  parts.push_back(std::move(answer));
  return sequence(std::move(parts), path);
}

}  // namespace braid::net
