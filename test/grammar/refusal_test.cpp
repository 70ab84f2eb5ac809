#include "grammar/walk.h"

#include <array>
#include <gtest/gtest.h>

namespace braid::test {
namespace {

TEST(SchemaRefusal, NamesThePathOfWhatCannotBeHonoured) {
  for (const auto& [schema, path] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"type":"object","properties":{"x":{"not":{"type":"null"}}}})", "schema.properties.x.not"},
           {R"({"type":"integer","multipleOf":123457})", "schema.multipleOf"},
           {R"({"if":{"type":"null"},"then":true})", "schema.if"},
           {R"({"type":"array","items":{"type":"array","contains":{}}})", "schema.items.contains"},
           {R"({"type":"array","uniqueItems":true})", "schema.uniqueItems"},
           {R"({"type":"string","pattern":"a(?<=b)x"})", "schema.pattern"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "schema.oneOf[1]"},
           {R"({"oneOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]})", "schema.oneOf[1]"},
           {R"({"$ref":"#/$defs/nope"})", "schema.$ref"},
           {R"({"$ref":"https://example.com/x"})", "schema.$ref"},
           {R"({"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})", "schema"},
           {R"({"$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}},"$ref":"#/$defs/a"})", "schema"},
           {R"({"type":"widget"})", "schema.type"},
           {R"({"type":"string","minLength":-1})", "schema.minLength"},
           {R"({"type":"object","required":"a"})", "schema.required"},
           {R"({"enum":[]})", "schema.enum"},
           {R"({"type":"string","enum":[1]})", "schema.enum"},
           {R"({"type":"integer","minimum":3,"maximum":2})", "schema"},
           {R"({"type":"object","properties":{"a":{}},"additionalProperties":true,"minProperties":3})", "schema.minProperties"},
           {R"([1])", "schema"},
           {R"(false)", "schema"}}) {
    const auto refused = toy_compiler().compile(schema_spec(schema));
    ASSERT_FALSE(refused) << schema;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, path) << schema << ": " << refused.error().message;
    EXPECT_EQ(refused.error().message.find(refused.error().param), 0U) << refused.error().message;
  }
}

// Without strict a keyword is left out alone, and what stands beside it binds.
TEST(SchemaRefusal, LenientSchemasLoseOnlyWhatCannotBeHonoured) {
  for (const auto& [schema, path, good, bad] : std::initializer_list<std::array<const char*, 4>>{
           {R"({"type":"string","pattern":"a(?<=b)x","maxLength":3})", "schema.pattern", R"("zzz")", R"("zzzz")"},
           {R"({"type":"object","properties":{"x":{"type":"integer","not":{"const":3},"minimum":2}}})", "schema.properties.x.not",
            R"({"x":3})", R"({"x":1})"},
           {R"({"type":"array","items":{"type":"integer"},"contains":{"const":1}})", "schema.contains", "[2]", R"(["a"])"},
           {R"({"type":"array","items":{"enum":[1]},"uniqueItems":true})", "schema.uniqueItems", "[1,1]", "[2]"},
           {R"({"type":"integer","multipleOf":123457,"maximum":5})", "schema.multipleOf", "4", "6"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "schema.oneOf[1]", "1", "null"},
           {R"({"$ref":"https://example.com/x","type":"null"})", "schema.$ref", "null", "1"},
           {R"({"type":"object","if":{"required":["a"]},"then":{},"properties":{"a":{"type":"null"}}})", "schema.if", R"({"a":null})",
            R"({"a":1})"}}) {
    const auto constraint = compile_or_die(schema_spec(schema, false));
    ASSERT_EQ(constraint->left_out().size(), 1U) << schema;
    EXPECT_EQ(constraint->left_out().front(), path);
    EXPECT_TRUE(accepts(*constraint, good)) << schema;
    EXPECT_FALSE(accepts(*constraint, bad)) << schema;
    const auto strict = toy_compiler().compile(schema_spec(schema, true));
    ASSERT_FALSE(strict) << schema;
    EXPECT_EQ(strict.error().param, path);
  }
}

TEST(SchemaRefusal, NamesThePathOfTheRequestThatHasTheSchema) {
  ConstraintSpec spec = schema_spec(R"({"type":"array","uniqueItems":true})", false);
  EXPECT_EQ((*toy_compiler().compile(spec))->left_out().front(), "schema.uniqueItems");
  spec.path = "tools[3].parameters";
  EXPECT_EQ((*toy_compiler().compile(spec))->left_out().front(), "tools[3].parameters.uniqueItems");
}

TEST(SchemaRefusal, BoundsSizeAndDepth) {
  std::string deep = "true";
  for (int i = 0; i < 120; ++i) deep = R"({"items":)" + deep + "}";
  EXPECT_TRUE(toy_compiler().compile(schema_spec(deep)));
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 1200; ++i) wide += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{}";
  const auto refused = toy_compiler().compile(schema_spec(wide + "}}"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "schema.properties");
}

std::string repeated(const std::string& before, const std::string& item, int times, const std::string& after) {
  std::string text = before;
  for (int i = 0; i < times; ++i) text += (i > 0 ? "," : "") + item;
  return text + after;
}

TEST(SchemaRefusal, BoundsWhatIsMergedAndCompared) {
  const std::string many = repeated(R"({"anyOf":[)", R"({"type":"string"})", 20000, "]}");
  const std::string others = repeated(R"({"anyOf":[)", R"({"maxLength":3})", 20000, "]}");
  for (const std::string& schema :
       {R"({"allOf":[)" + many + "," + others + "]}", repeated(R"({"allOf":[)", R"({"items":{"minLength":1}})", 50000, "]}"),
        repeated(R"({"oneOf":[)", R"({"const":1})", 20000, "]}")})
    EXPECT_FALSE(toy_compiler().compile(schema_spec(schema))) << schema.substr(0, 60);
}

// Rules that begin alike and cannot be told apart by what they begin with.
TEST(GrammarRefusal, BoundsHowManyRulesBeginAtOnePlace) {
  const auto text = [](int rules) {
    std::string root = "root ::= \"a\" (";
    std::string others;
    for (int i = 0; i < rules; ++i) {
      const std::string number = std::to_string(i);
      root += (i > 0 ? " | r" : "r") + number + " \"" + number + "\"";
      others += "\nr" + number + " ::= \"(\" r" + number + " \")\" | \"x" + number + "\"";
    }
    return root + ")" + others;
  };
  const auto spec = [](std::string grammar) { return ConstraintSpec{ConstraintSpec::Grammar{std::move(grammar)}, "grammar"}; };
  EXPECT_TRUE(accepts(*compile_or_die(spec(text(60))), "a((x59))59"));
  const auto refused = toy_compiler().compile(spec(text(200)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "grammar");
  EXPECT_NE(refused.error().message.find("at one place"), std::string::npos) << refused.error().message;
}

TEST(SchemaRefusal, ComparesSchemasThatItNeverCompiles) {
  const std::string odd = R"({"type":"object","required":["a"],"properties":{"a":{"type":"bogus"}}})";
  const auto refused = toy_compiler().compile(schema_spec(R"({"type":"string","oneOf":[)" + odd + "," + odd + "]}"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no finite text"), std::string::npos) << refused.error().message;
}

TEST(Compiler, CompilesBigSchemas) {
  std::string big = R"({"type":"object","properties":{)";
  for (int i = 0; i < 300; ++i)
    big += (i > 0 ? ",\"property_" : "\"property_") + std::to_string(i) + R"(":{"type":"string","maxLength":)" + std::to_string(i) + "}";
  EXPECT_TRUE(toy_compiler().compile(schema_spec(big + "}}")));
}

TEST(Compiler, KeepsWhatItCompiledAndForgetsTheOldest) {
  const grammar::Compiler compiler([] { return grammar::Vocabulary(toy_tokens(), {kEnd}); }, {.cached_constraints = 2});
  const auto choice = [](std::string option) { return ConstraintSpec{ConstraintSpec::Choice{{std::move(option)}}, "choice"}; };
  const auto first = *compiler.compile(choice("a"));
  EXPECT_EQ(*compiler.compile(choice("a")), first);
  ConstraintSpec elsewhere = choice("a");
  elsewhere.path = "another.path";
  EXPECT_EQ(*compiler.compile(elsewhere), first);
  EXPECT_NE(*compiler.compile({ConstraintSpec::Literal{"a"}, "choice"}), first);
  const auto second = *compiler.compile(choice("b"));
  EXPECT_NE(*compiler.compile(choice("a")), first);
  EXPECT_EQ(*compiler.compile(choice("b")), second);
}

TEST(Compiler, MakesMasksAnewWhenTheirMemoryIsSpent) {
  const grammar::Compiler compiler([] { return grammar::Vocabulary(toy_tokens(), {kEnd}); }, {.mask_bytes = 2000});
  const auto constraint = *compiler.compile({ConstraintSpec::JsonObject{}, ""});
  const auto plenty = compile_or_die({ConstraintSpec::JsonObject{}, ""});
  const auto state = constraint->start({});
  const auto other = plenty->start({});
  for (const char byte : std::string_view(R"({"a": [1, "b")")) {
    EXPECT_EQ(allowed_tokens(*state), allowed_tokens(*other));
    state->accept(2 + byte);
    other->accept(2 + byte);
  }
}

}  // namespace
}  // namespace braid::test
