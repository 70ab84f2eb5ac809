#include "grammar/walk.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <iterator>

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
           {R"({"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})", "schema.$defs.a.$ref"},
           {R"({"$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}},"$ref":"#/$defs/a"})",
            "schema.$defs.a.properties.a"},
           {R"({"type":"widget"})", "schema.type"},
           {R"({"type":"string","minLength":-1})", "schema.minLength"},
           {R"({"type":"object","required":"a"})", "schema.required"},
           {R"({"enum":[]})", "schema.enum"},
           {R"({"type":"string","enum":[1]})", "schema.enum"},
           {R"({"type":"integer","minimum":3,"maximum":2})", "schema"},
           {R"({"type":"object","properties":{"a":{}},"additionalProperties":true,"minProperties":3})", "schema.minProperties"},
           {R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":2}},"required":["a"]})", "schema.properties.a"},
           {R"({"type":"object","properties":{"a":{}},"required":["b"],"additionalProperties":false})", "schema.additionalProperties"},
           {R"([1])", "schema"},
           {R"(false)", "schema"}}) {
    const auto refused = toy_compiler().compile(schema_spec(schema));
    ASSERT_FALSE(refused) << schema;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, path) << schema << ": " << refused.error().message;
    EXPECT_EQ(refused.error().message.find(refused.error().param), 0U) << refused.error().message;
  }
}

// Joined schemas have paths that nobody wrote.
TEST(SchemaRefusal, NamesThePathAsItIsWritten) {
  const std::string unique = R"({"uniqueItems":true})";
  for (const auto& [schema, path] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"allOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"a":)" + unique + "}}]}",
            "schema.allOf[1].properties.a.uniqueItems"},
           {R"({"properties":{"a":{"properties":{"b":)" + unique + R"(}}},"allOf":[{"properties":{"a":{"type":"object"}}}]})",
            "schema.properties.a.properties.b.uniqueItems"},
           {R"({"properties":{"a":)" + unique + R"(},"anyOf":[{"required":["a"]},{"required":["b"]}]})", "schema.properties.a.uniqueItems"},
           {R"({"anyOf":[{"minProperties":1},{"properties":{"a":)" + unique + R"(}}],"properties":{"b":{}}})",
            "schema.anyOf[1].properties.a.uniqueItems"},
           {R"({"$defs":{"x":{"properties":{"a.b":)" + unique + R"(}}},"$ref":"#/$defs/x","minProperties":1})",
            "schema.$defs.x.properties.a.b.uniqueItems"},
           {R"({"$defs":{"x":{"properties":{"a":)" + unique + R"(}}},"allOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{}}}]})",
            "schema.$defs.x.properties.a.uniqueItems"},
           {R"({"$defs":{"x":[{},{"$id":"pair","uniqueItems":true}]},"items":{"$ref":"pair"}})", "schema.$defs.x[1].uniqueItems"},
           {R"({"$defs":{"x/y":{"$anchor":"pair","items":)" + unique + R"(}},"items":{"$ref":"#/$defs/x~1y"}})",
            "schema.$defs.x/y.items.uniqueItems"},
           {R"({"items":[)" + unique + "]}", "schema.items[0].uniqueItems"},
           {R"({"items":[{}],"additionalItems":)" + unique + "}", "schema.additionalItems.uniqueItems"}}) {
    const auto refused = toy_compiler().compile(schema_spec(schema));
    ASSERT_FALSE(refused) << schema;
    EXPECT_EQ(refused.error().param, path) << schema << ": " << refused.error().message;
    const auto lenient = compile_or_die(schema_spec(schema, false));
    ASSERT_EQ(lenient->left_out().size(), 1U) << schema;
    EXPECT_EQ(lenient->left_out().front(), path);
  }
}

void expect_lost_alone(const char* schema, const char* path, const char* good, const char* bad) {
  const auto constraint = compile_or_die(schema_spec(schema, false));
  ASSERT_EQ(constraint->left_out().size(), 1U) << schema;
  EXPECT_EQ(constraint->left_out().front(), path);
  EXPECT_TRUE(accepts(*constraint, good)) << schema;
  EXPECT_FALSE(accepts(*constraint, bad)) << schema;
  const auto strict = toy_compiler().compile(schema_spec(schema, true));
  ASSERT_FALSE(strict) << schema;
  EXPECT_EQ(strict.error().param, path);
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
            R"({"a":1})"},
           {R"({"type":"any","maxLength":1})", "schema.type", R"("a")", R"("aa")"},
           {R"({"type":["string","widget"],"maxLength":1})", "schema.type", R"("a")", R"("aa")"},
           {R"({"type":"object","properties":{"a":{"type":"null","required":true}}})", "schema.properties.a.required", R"({"a":null})",
            R"({"a":1})"},
           {R"({"type":"object","required":["a",1],"properties":{"a":{"type":"null"}}})", "schema.required", R"({"a":null})", "{}"},
           {R"({"type":"object","properties":{"a":5,"b":{"type":"null"}}})", "schema.properties.a", R"({"a":1,"b":null})", R"({"b":1})"},
           {R"({"type":"object","properties":[]})", "schema.properties", R"({"a":1})", "1"},
           {R"({"type":"string","enum":[]})", "schema.enum", R"("a")", "1"},
           {R"({"type":"string","enum":{"a":1}})", "schema.enum", R"("a")", "1"},
           {R"({"type":"string","enum":[1]})", "schema.enum", R"("a")", "1"},
           {R"({"type":"string","const":1})", "schema.const", R"("a")", "1"},
           {R"({"anyOf":[],"type":"null"})", "schema.anyOf", "null", "1"},
           {R"({"allOf":["a",{"type":"null"}]})", "schema.allOf[0]", "null", "1"},
           {R"({"type":"string","minLength":"1","maxLength":1})", "schema.minLength", R"("")", R"("aa")"},
           {R"({"type":"integer","minimum":"0","maximum":5})", "schema.minimum", "-1", "6"},
           {R"({"type":"array","items":"string","maxItems":1})", "schema.items", "[1]", "[1,2]"},
           {R"({"type":"array","items":[{"type":"null"},"x"]})", "schema.items[1]", "[null,1]", "[1]"},
           {R"({"$ref":"#/$defs/nope","type":"null"})", "schema.$ref", "null", "1"},
           {R"({"$ref":1,"type":"null"})", "schema.$ref", "null", "1"},
           {R"({"type":"object","properties":{"a":{"$ref":"#/$defs/nope"},"b":{"type":"null"}}})", "schema.properties.a.$ref",
            R"({"a":1,"b":null})", R"({"b":1})"},
           {R"({"$defs":{"a":{"$ref":"#/$defs/a"}},"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"null"}}})",
            "schema.$defs.a.$ref", R"({"a":1,"b":null})", R"({"b":1})"},
           {R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}})",
            "schema.$defs.a.anyOf[0].$ref", R"({"a":1})", R"({"b":1})"},
           {R"({"$defs":{"a":{"$ref":"#/$defs/a","maxLength":1}},"type":"string","allOf":[{"$ref":"#/$defs/a"}]})", "schema.allOf[0].$ref",
            R"("a")", R"("aa")"},
           {R"({"type":"object","propertyNames":{"pattern":5,"maxLength":1},"properties":{"a":{},"bb":{}}})",
            "schema.propertyNames.pattern", R"({"a":1})", R"({"bb":1})"}})
    expect_lost_alone(schema, path, good, bad);
}

TEST(SchemaRefusal, WhatMustBeThereAndCannotIsAnything) {
  for (
      const auto& [schema, path, good, bad] : std::initializer_list<std::array<const char*, 4>>{
          {R"({"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":2},"b":{"type":"null"}},"required":["a","b"]})",
           "schema.properties.a", R"({"a":1,"b":null})", R"({"a":1,"b":1})"},
          {R"({"type":"object","properties":{"b":{"type":"null"}},"required":["a","b"],"additionalProperties":false})",
           "schema.additionalProperties", R"({"b":null,"a":1})", R"({"b":1,"a":1})"},
          {R"({"type":"object","properties":{"a":{"type":"object","properties":{"b":false},"required":["b"]}},"required":["a"]})",
           "schema.properties.a.properties.b", R"({"a":{"b":1}})", R"({"a":1})"},
          {R"({"properties":{"a":{"anyOf":[false,{"type":"integer","minimum":3,"maximum":2}]},"b":{"enum":[1]}},"required":["a","b"]})",
           "schema.properties.a", R"({"a":"","b":1})", R"({"a":"","b":2})"},
          {R"({"type":"array","items":false,"minItems":1,"maxItems":2})", "schema.items", "[1]", "[1,2,3]"},
          {R"({"type":"array","prefixItems":[false,{"type":"null"}],"minItems":2})", "schema.prefixItems[0]", "[1,null]", "[1,1]"},
          {R"({"$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}},"items":{"$ref":"#/$defs/a"},"minItems":1})",
           "schema.$defs.a.properties.a", R"([{"a":1}])", "[1]"},
          // What need not be there stays as it is.
          {R"({"properties":{"a":false,"b":{"properties":{"c":false},"required":["c"]}},"required":["a"]})", "schema.properties.a",
           R"({"a":1})", R"({"a":1,"b":{"c":1}})"},
          {R"({"properties":{"b":{"type":["null","object"],"properties":{"c":false},"required":["c"]},"a":false},"required":["a","b"]})",
           "schema.properties.a", R"({"b":null,"a":1})", R"({"b":{"c":1},"a":1})"},
          {R"({"properties":{"b":{"anyOf":[{"properties":{"c":false},"required":["c"]},{"type":"null"}]},"a":false},"required":["a","b"]})",
           "schema.properties.a", R"({"b":null,"a":1})", R"({"b":{"c":1},"a":1})"}})
    expect_lost_alone(schema, path, good, bad);
}

TEST(SchemaRefusal, NamesThePathOfTheRequestThatHasTheSchema) {
  ConstraintSpec spec = schema_spec(R"({"type":"array","uniqueItems":true})", false);
  EXPECT_EQ((*toy_compiler().compile(spec))->left_out().front(), "schema.uniqueItems");
  spec.path = "tools[3].parameters";
  EXPECT_EQ((*toy_compiler().compile(spec))->left_out().front(), "tools[3].parameters.uniqueItems");
}

// What fails only as a whole: nothing satisfies it, it is too large, it leads back to itself by a way around.
std::vector<std::string> hopeless_schemas() {
  std::string large = R"({"properties":{)";
  for (int i = 0; i < 300; ++i)
    large += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"const":")" + std::to_string(i) + std::string(300, 'x') + "\"}";
  return {
      large + "}}", R"({"minProperties":2,"maxProperties":1})",
      R"({"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/b"}},{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}})"};
}

// What fails because of one member, which is called a.
std::vector<std::string> schemas_with_a_barren_member() {
  return {R"({"properties":{"a":false},"required":["a"]})",
          R"({"properties":{"a":{"type":"integer","minimum":3,"maximum":2}},"required":["a"]})",
          R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})"};
}

ConstraintSpec call_of(std::string name, ConstraintSpec arguments) {
  ConstraintSpec begin{ConstraintSpec::Literal{std::move(name)}, "tools"};
  return {ConstraintSpec::Sequence{{std::move(begin), std::move(arguments)}}, "tools"};
}

ConstraintSpec arguments_spec(std::string json, bool strict, std::string path) {
  ConstraintSpec spec = schema_spec(std::move(json), strict);
  std::get<ConstraintSpec::JsonSchema>(spec.kind).object = true;
  spec.path = std::move(path);
  return spec;
}

TEST(SchemaRefusal, OfSeveralSchemasOnlyTheOneAtFaultIsLost) {
  const char* good = R"({"properties":{"n":{"enum":[1]}},"required":["n"]})";
  for (const std::string& schema : hopeless_schemas())
    for (const bool strict : {true, false}) {
      const ConstraintSpec spec{ConstraintSpec::Alternatives{{call_of("bad", arguments_spec(schema, false, "tools[0].parameters")),
                                                              call_of("good", arguments_spec(good, strict, "tools[1].parameters"))}},
                                "tools"};
      const auto constraint = compile_or_die(spec);
      ASSERT_EQ(constraint->left_out().size(), 1U) << schema;
      EXPECT_EQ(constraint->left_out().front(), "tools[0].parameters");
      EXPECT_TRUE(accepts(*constraint, R"(bad{"x":2})")) << schema;
      EXPECT_FALSE(accepts(*constraint, "bad1")) << schema;
      EXPECT_TRUE(accepts(*constraint, R"(good{"n":1})")) << schema;
      EXPECT_FALSE(accepts(*constraint, R"(good{"n":2})")) << schema;
    }
}

TEST(SchemaRefusal, AMemberThatNothingSatisfiesIsLostAlone) {
  const std::string other = R"({"properties":{"a":false,"n":{"enum":[1]}},"required":["a","n"]})";
  for (const std::string& schema : schemas_with_a_barren_member()) {
    const ConstraintSpec spec{ConstraintSpec::Alternatives{{call_of("one", arguments_spec(schema, false, "tools[0].parameters")),
                                                            call_of("two", arguments_spec(other, false, "tools[1].parameters"))}},
                              "tools"};
    const auto constraint = compile_or_die(spec);
    ASSERT_EQ(constraint->left_out().size(), 2U) << schema;
    EXPECT_EQ(constraint->left_out().front(), "tools[0].parameters.properties.a");
    EXPECT_EQ(constraint->left_out().back(), "tools[1].parameters.properties.a");
    EXPECT_TRUE(accepts(*constraint, R"(one{"a":2})")) << schema;
    EXPECT_FALSE(accepts(*constraint, R"(one{"x":2})")) << schema;
    EXPECT_TRUE(accepts(*constraint, R"(two{"a":2,"n":1})")) << schema;
    EXPECT_FALSE(accepts(*constraint, R"(two{"a":2,"n":2})")) << schema;
  }
}

TEST(SchemaRefusal, AStrictOneAmongThemIsNamed) {
  std::vector<std::string> schemas = hopeless_schemas();
  std::ranges::move(schemas_with_a_barren_member(), std::back_inserter(schemas));
  for (const std::string& schema : schemas) {
    const ConstraintSpec spec{ConstraintSpec::Alternatives{{call_of("good", arguments_spec("{}", false, "tools[0].parameters")),
                                                            call_of("bad", arguments_spec(schema, true, "tools[1].parameters"))}},
                              "tools"};
    const auto refused = toy_compiler().compile(spec);
    ASSERT_FALSE(refused) << schema;
    EXPECT_TRUE(refused.error().param.starts_with("tools[1].parameters")) << refused.error().param;
  }
}

// Of those that are each small enough the first ones bind, and strict ones wherever they stand.
TEST(SchemaRefusal, SchemasThatAreTooLargeTogetherAreLostOneByOne) {
  std::vector<ConstraintSpec> calls;
  for (int i = 0; i < 12; ++i) {
    std::string schema = R"({"properties":{)";
    for (int k = 0; k < 300; ++k)
      schema +=
          (k > 0 ? ",\"property_" : "\"property_") + std::to_string(k) + R"(":{"enum":["some value )" + std::to_string(i + k) + R"("]})";
    calls.push_back(
        call_of(std::to_string(i) + ":", arguments_spec(schema + "}}", i == 11, "tools[" + std::to_string(i) + "].parameters")));
  }
  const auto constraint = compile_or_die({ConstraintSpec::Alternatives{std::move(calls)}, "tools"});
  const auto left_out = constraint->left_out();
  ASSERT_FALSE(left_out.empty());
  ASSERT_LT(left_out.size(), 11U);
  EXPECT_EQ(left_out.back(), "tools[10].parameters");
  EXPECT_FALSE(accepts(*constraint, R"(0:{"property_0":1})"));
  EXPECT_TRUE(accepts(*constraint, R"(10:{"property_0":1})"));
  EXPECT_FALSE(accepts(*constraint, R"(11:{"property_0":1})"));
}

TEST(SchemaRefusal, ArgumentsAreObjects) {
  for (const char* schema : {R"({"type":"any"})", R"({"type":"string"})", R"({"type":["null","array"]})"}) {
    const auto lenient = compile_or_die(arguments_spec(schema, false, "parameters"));
    ASSERT_EQ(lenient->left_out().size(), 1U) << schema;
    EXPECT_EQ(lenient->left_out().front(), "parameters.type");
    EXPECT_TRUE(accepts(*lenient, "{}")) << schema;
    EXPECT_FALSE(accepts(*lenient, R"("a")")) << schema;
    EXPECT_EQ(toy_compiler().compile(arguments_spec(schema, true, "parameters")).error().param, "parameters.type");
  }
  for (const char* schema : {"{}", R"({"type":["object","null"]})", R"({"anyOf":[{"type":"object"},{"type":"null"}]})"}) {
    const auto strict = compile_or_die(arguments_spec(schema, true, "parameters"));
    EXPECT_TRUE(accepts(*strict, R"({"a":1})")) << schema;
    EXPECT_FALSE(accepts(*strict, "null")) << schema;
  }
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
  const auto lenient = compile_or_die(schema_spec(wide + "}}", false));
  EXPECT_EQ(lenient->left_out().front(), "schema.properties");
  EXPECT_TRUE(accepts(*lenient, R"({"any":1})"));
  EXPECT_FALSE(accepts(*lenient, "1"));
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
