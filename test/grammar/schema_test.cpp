#include <gtest/gtest.h>

#include "walk.h"

namespace braid::test {
namespace {

TEST(JsonObject, AcceptsObjectsOnly) {
  const auto constraint = compile_or_die({ConstraintSpec::JsonObject{}, "response_format"});
  for (const char* text : {"{}", "{ }", R"({"a":1})", R"({"a": [1, 2.5e-3, {"b": null}], "c": "\u00e9\ud83d\ude00\n"})",
                           "{\n  \"a\": true\n}", R"({"é":"中"})"})
    EXPECT_TRUE(accepts(*constraint, text)) << text;
  for (const char* text :
       {"", "[]", "1", R"({"a"})", R"({"a":01})", R"({"a":1,})", R"({"a":"\x"})", R"({"a":"\ud83d"})", R"({a:1})", "{\"a\":\"\n\"}",
        "{\"a\":\"\xC3\"}", "{\"a\":\"\xED\xA0\x80\"}", R"({"a":1} )", R"({"a":+1})", R"({"a":.5})", R"({"a":tru})"})
    EXPECT_FALSE(accepts(*constraint, text)) << text;
}

TEST(JsonSchema, HonoursTypesAndOrder) {
  const auto constraint = compile_or_die(schema_spec(
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false})"));
  EXPECT_TRUE(accepts(*constraint, R"({"name":"x","age":3})"));
  EXPECT_FALSE(accepts(*constraint, R"({"age":3,"name":"x"})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x"})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x","age":3.5})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x","age":3,"more":1})"));
}

}  // namespace
}  // namespace braid::test
