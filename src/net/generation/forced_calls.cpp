#include "net/generation/forced_calls.h"

#include "net/generation/call_parts.h"

#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

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

ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& answer) {
  std::vector<Spec> parts;
  append_calls(parts, rules, *answer.calls, false);
  return after_any_reasoning(answer, std::move(parts));
}

ConstraintSpec calls_or(const ToolRules& rules, const AnswerSyntax& answer, ConstraintSpec text) {
  std::vector<Spec> calls;
  append_calls(calls, rules, *answer.calls, false);
  std::vector<Spec> options;
  options.push_back(sequence(std::move(calls), kToolsPath));
  options.push_back(std::move(text));
  std::vector<Spec> parts;
  parts.push_back({Spec::Alternatives{std::move(options)}, kToolsPath});
  return after_any_reasoning(answer, std::move(parts));
}

ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer) {
  if (!syntax.begins_in_reasoning) return answer;
  std::string path = answer.path;
  std::vector<Spec> parts = {{Spec::FreeUntil{syntax.reasoning.close}, path}, literal("\n\n", path)};
  parts.push_back(std::move(answer));
  return sequence(std::move(parts), path);
}

}  // namespace braid::net
