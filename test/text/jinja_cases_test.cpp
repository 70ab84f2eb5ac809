// Renders of templates against those of Jinja2, made by jinja_cases/make_cases.py.
#include "text/chat_template.h"
#include "text/json_value.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace braid::text {
namespace {

const std::string& text_of(const Value& object, std::string_view key) { return *object.find(key)->get_if<std::string>(); }

ChatPrompt prompt_of(const Value& entry) {
  ChatPrompt prompt;
  prompt.messages = *entry.find("messages");
  if (const auto* tools = entry.find("tools")) prompt.tools = *tools;
  if (const auto* kwargs = entry.find("kwargs")) prompt.kwargs = *kwargs;
  if (const auto* add = entry.find("add_generation_prompt")) prompt.add_generation_prompt = *add->get_if<bool>();
  return prompt;
}

Result<std::string> render(const Value& table, const Value& entry) {
  const auto& source = text_of(*table.find("templates"), text_of(entry, "template"));
  auto parsed = ChatTemplate::parse(source, text_of(table, "bos_token"), text_of(table, "eos_token"));
  if (!parsed) return parsed.error();
  return parsed->render(prompt_of(entry));
}

void expect_table(const std::string& path) {
  const Value table = braid::test::load_json(path);
  for (const auto& entry : *table.find("cases")->get_if<ValueList>()) {
    const auto rendered = render(table, entry);
    const auto* expected = entry.find("expected")->get_if<std::string>();
    const std::string which = text_of(entry, "template") + " with " + text_of(entry, "name") + ": " +
                              text_of(*table.find("templates"), text_of(entry, "template")).substr(0, 200);
    if (expected == nullptr) {
      EXPECT_FALSE(rendered) << which << "\nrendered: " << *rendered;
      if (!rendered) {
        EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidArgument);
      }
    } else if (rendered) {
      EXPECT_EQ(*rendered, *expected) << which;
    } else {
      ADD_FAILURE() << which << "\n" << rendered.error().message;
    }
  }
}

TEST(JinjaCases, RendersTheCommittedTableAsJinja2Does) { expect_table(BRAID_SOURCE_DIR "/test/text/jinja_cases/cases.json"); }

TEST(JinjaCases, RendersATableOfOtherTemplatesAsJinja2Does) {
  const char* path = std::getenv("BRAID_JINJA_CASES");
  if (path == nullptr) GTEST_SKIP() << "set BRAID_JINJA_CASES to a table made by make_cases.py";
  expect_table(path);
}

}  // namespace
}  // namespace braid::text
