// Every name of structured output, and which path an error names.
#include "net/fake_chat.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

struct Name {
  std::string operator()(const ConstraintSpec::JsonObject&) const { return "object"; }
  std::string operator()(const ConstraintSpec::JsonSchema&) const { return "schema"; }
  std::string operator()(const ConstraintSpec::Regex& regex) const { return "regex " + regex.pattern; }
  std::string operator()(const ConstraintSpec::Choice& choice) const { return "choice " + std::to_string(choice.options.size()); }
  std::string operator()(const ConstraintSpec::Grammar& grammar) const { return "grammar " + grammar.text; }
  template <class Other>
  std::string operator()(const Other&) const {
    return "other";
  }
};

// The constraint as "<kind>@<path>", "none", or the path of the error behind "!".
std::string constraint_of(const std::string& fields) {
  const auto call = chat_with(fields);
  if (!call) return "!" + call.error().param;
  if (!call->constraint_spec) return "none";
  return std::visit(Name{}, call->constraint_spec->kind) + "@" + call->constraint_spec->path;
}

TEST(StructuredOutput, HasManyNames) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("response_format":{"type":"text"})", "none"},
      {R"("response_format":{"type":"json_object"})", "object@response_format"},
      {R"("response_format":{"type":"json_object","schema":{}})", "schema@response_format.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object"}}})",
       "schema@response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","schema":{"type":"object"}})", "schema@response_format.schema"},
      {R"("guided_json":{"type":"object"})", "schema@guided_json"},
      {R"("guided_json":"{\"type\":\"object\"}")", "schema@guided_json"},
      {R"("json_schema":{})", "schema@json_schema"},
      {R"("guided_regex":"a+")", "regex a+@guided_regex"},
      {R"("guided_choice":["a","b"])", "choice 2@guided_choice"},
      {R"("guided_grammar":"root ::= \"a\"")", "grammar root ::= \"a\"@guided_grammar"},
      {R"("grammar":"start: \"a\"")", "grammar start: \"a\"@grammar"},
      {R"("grammar":"")", "none"},
      {R"("structured_outputs":{})", "none"},
      {R"("structured_outputs":{"json":{},"regex":null})", "schema@structured_outputs.json"},
      {R"("structured_outputs":{"json_object":true})", "object@structured_outputs.json_object"},
      {R"("structured_outputs":{"choice":["a"]})", "choice 1@structured_outputs.choice"},
      {R"("structured_outputs":{"regex":"a"})", "regex a@structured_outputs.regex"},
  };
  for (const auto& [fields, expected] : cases) EXPECT_EQ(constraint_of(fields), expected) << fields;
}

TEST(StructuredOutput, ErrorsNameThePath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("response_format":"text")", "!response_format"},
      {R"("response_format":{})", "!response_format.type"},
      {R"("response_format":{"type":"xml"})", "!response_format.type"},
      {R"("response_format":{"type":1})", "!response_format.type"},
      {R"("response_format":{"type":"json_schema"})", "!response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})", "!response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":1}})", "!response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}})", "!response_format.json_schema.strict"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"name":1}})", "!response_format.json_schema.name"},
      {R"("guided_json":"{")", "!guided_json"},
      {R"("guided_regex":1)", "!guided_regex"},
      {R"("guided_choice":[])", "!guided_choice"},
      {R"("guided_choice":["a",1])", "!guided_choice[1]"},
      {R"("grammar":{})", "!grammar"},
      {R"("structured_outputs":{"structural_tag":"x"})", "!structured_outputs.structural_tag"},
      {R"("structured_outputs":[])", "!structured_outputs"},
      {R"("guided_regex":"a","guided_choice":["a"])", "!guided_choice"},
  };
  for (const auto& [fields, expected] : cases) EXPECT_EQ(constraint_of(fields), expected) << fields;
}

TEST(StructuredOutput, IsRefusedWithoutACompiler) {
  ServedModel model = kFakeModel;
  model.constraints = nullptr;
  EXPECT_EQ(chat_with(R"("guided_json":{})", model).error().param, "guided_json");
  EXPECT_TRUE(chat_with(R"("response_format":{"type":"text"})", model));
}

}  // namespace
}  // namespace braid::test
