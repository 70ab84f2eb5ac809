#include "fuzz/jinja.h"

#include "text/jinja/from_value.h"
#include "text/jinja/program.h"

#include <cstdlib>

namespace braid::test {
namespace {

using text::jinja::Program;
using text::jinja::to_object;

Value conversation() {
  ValueDict call{{"name", "search"}, {"arguments", ValueDict{{"q", ValueList{1, 2.5, nullptr, true, "a\"b"}}}}};
  ValueDict system{{"role", "system"}, {"content", " Be terse.\n"}};
  ValueDict user{{"role", "user"}, {"content", ValueList{ValueDict{{"type", "text"}, {"text", "Gr\xC3\xBC\xC3\x9F \xF0\x9F\xA6\x8A"}}}}};
  ValueDict assistant{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", ValueList{ValueDict{{"function", std::move(call)}}}}};
  return ValueList{std::move(system), std::move(user), std::move(assistant)};
}

Result<std::string> render(const Program& program) {
  const Value messages = conversation();
  text::jinja::Variables variables;
  variables.emplace_back("messages", to_object(messages));
  variables.emplace_back("tools", to_object(messages));
  variables.emplace_back("text", to_object("one, two"));
  variables.emplace_back("n", to_object(7));
  variables.emplace_back("add_generation_prompt", true);
  return program.render(std::move(variables), {.steps = 20'000, .bytes = 1 << 20, .output_bytes = 1 << 18});
}

void check(const Error& error) {
  if (error.code != ErrorCode::kInvalidArgument || error.message.rfind("line ", 0) != 0) std::abort();
}

}  // namespace

void fuzz_jinja(std::string_view source) {
  const auto program = Program::parse(source);
  if (!program) return check(program.error());
  const auto first = render(*program);
  const auto second = render(*program);
  if (first.has_error()) check(first.error());
  const bool clock = source.find("strftime_now") != std::string_view::npos;
  if (!clock && (first.has_value() != second.has_value() || (first && *first != *second))) std::abort();
}

}  // namespace braid::test
