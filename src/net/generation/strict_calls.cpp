#include "net/generation/strict_calls.h"

#include "net/generation/call_parts.h"
#include "net/generation/calls_in_text.h"

#include <algorithm>
#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

// The marker that all others end with, whichever the model writes; null: there is none.
const std::string* common_end(const std::vector<std::string>& markers) {
  for (const std::string& marker : markers)
    if (std::all_of(markers.begin(), markers.end(), [&marker](const std::string& other) { return other.ends_with(marker); }))
      return &marker;
  return nullptr;
}

// Free text in which the marker begins a call.
Spec calls_behind(const std::string& marker, const ToolRules& rules, const CallSyntax& syntax) {
  std::vector<Spec> call = {{Spec::FreeUntil{marker}, kToolsPath}};
  append_calls(call, rules, syntax, true);
  std::vector<Spec> parts;
  parts.push_back({Spec::Repeat{{sequence(std::move(call), kToolsPath)}, 0, rules.parallel ? -1 : 1}, kToolsPath});
  parts.push_back({Spec::FreeWithout{marker}, kToolsPath});
  return sequence(std::move(parts), kToolsPath);
}

}  // namespace

std::optional<ConstraintSpec> strict_calls(const ToolRules& rules, const AnswerSyntax& answer) {
  const CallSyntax& syntax = *answer.calls;
  const bool strict = std::any_of(rules.functions.begin(), rules.functions.end(), [](const ToolFunction& one) { return one.strict; });
  if (!strict) return std::nullopt;
  const std::string* marker = common_end(syntax.begin);
  const bool may_be_text = syntax.bare || syntax.form == CallSyntax::Form::kPythonic;
  if (!may_be_text && marker == nullptr) return std::nullopt;
  const ReasoningTags& tags = answer.reasoning;
  const bool may_think = !tags.open.empty() && !answer.begins_in_reasoning;
  const std::string thought_begin = may_think ? tags.open.substr(0, 1) : "";
  ConstraintSpec spoken = may_be_text ? calls_in_text(rules, syntax, thought_begin) : calls_behind(*marker, rules, syntax);
  if (!may_think && !answer.begins_in_reasoning) return spoken;
  // Within its thoughts a marker means nothing. They may also not come to an end.
  std::vector<Spec> thought;
  if (may_think) thought.push_back(literal(tags.open, kToolsPath));
  std::vector<Spec> unended = thought;
  unended.push_back({Spec::FreeWithout{tags.close}, kToolsPath});
  thought.push_back({Spec::FreeUntil{tags.close}, kToolsPath});
  std::vector<Spec> ended = {{Spec::Repeat{{sequence(std::move(thought), kToolsPath)}, may_think ? 0 : 1, 1}, kToolsPath}};
  ended.push_back(std::move(spoken));
  std::vector<Spec> options = {sequence(std::move(ended), kToolsPath), sequence(std::move(unended), kToolsPath)};
  return ConstraintSpec{Spec::Alternatives{std::move(options)}, kToolsPath};
}

}  // namespace braid::net
