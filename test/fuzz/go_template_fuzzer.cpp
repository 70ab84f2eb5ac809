// Parses a chat template in Go's form and writes a short conversation with it, twice. Aborts when an error is none of the template's, or the two
// differ.
#include "text/go_template/chat.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace {

using braid::Value;
using braid::ValueDict;
using braid::ValueList;

Value conversation() {
  ValueDict call{{"name", "search"}, {"arguments", ValueDict{{"q", ValueList{1, 2.5, nullptr, true, "a\"<b"}}}}};
  ValueDict system{{"role", "system"}, {"content", " Be terse.\n"}};
  ValueDict user{{"role", "user"}, {"content", ValueList{ValueDict{{"type", "text"}, {"text", "Gr\xC3\xBC\xC3\x9F \xF0\x9F\xA6\x8A"}}}}};
  ValueDict assistant{{"role", "assistant"},
                      {"content", nullptr},
                      {"reasoning_content", "hm"},
                      {"tool_calls", ValueList{ValueDict{{"function", std::move(call)}}}}};
  ValueDict tool{{"role", "tool"}, {"name", "search"}, {"content", "nothing"}};
  return ValueList{std::move(system), std::move(user), std::move(assistant), std::move(tool)};
}

void check(const braid::Error& error) {
  if (error.code != braid::ErrorCode::kInvalidArgument || !error.message.starts_with("the template")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  braid::text::go::is_go_template(source);
  const auto program = braid::text::go::ChatProgram::parse(source);
  if (!program) return check(program.error()), 0;
  braid::ChatPrompt prompt;
  prompt.messages = conversation();
  prompt.tools = ValueList{ValueDict{{"type", "function"}, {"function", ValueDict{{"name", "search"}}}}};
  const auto first = program->render(prompt);
  const auto second = program->render(prompt);
  if (!first) check(first.error());
  const bool has_date = source.find("Date") != std::string_view::npos;
  if (!has_date && (first.has_value() != second.has_value() || (first && *first != *second))) std::abort();
  return 0;
}
