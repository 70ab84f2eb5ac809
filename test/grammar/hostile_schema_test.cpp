// What a client may ask an answer to satisfy, to trouble the server.
#include "grammar/walk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

TEST(HostileSchema, ConstantsThatDifferAllowNothing) {
  EXPECT_FALSE(toy_compiler().compile(schema_spec(R"({"allOf":[{"const":1},{"const":2}]})")));
  const auto same = compile_or_die(schema_spec(R"({"allOf":[{"const":1},{"const":1}]})"));
  EXPECT_TRUE(accepts(*same, "1"));
  EXPECT_FALSE(accepts(*same, "2"));
}

// Comparing each property twice, or as often as it is required, would take 2^60 steps.
TEST(HostileSchema, BranchesThatNestDeepAreCompared) {
  const auto nested = [](const char* leaf) {
    std::string schema = leaf;
    for (int i = 0; i < 60; ++i) schema = R"({"type":"object","required":["a","a"],"properties":{"a":)" + schema + "}}";
    return schema;
  };
  const auto compile = [&](const char* first, const char* second) {
    return toy_compiler().compile(schema_spec(R"({"oneOf":[)" + nested(first) + "," + nested(second) + "]}"));
  };
  EXPECT_FALSE(compile(R"({"type":"string"})", R"({"type":"string"})"));
  EXPECT_TRUE(compile(R"({"type":"string"})", R"({"type":"null"})"));
}

// Each level has twice the branches of the one above; what is left out ends none of them.
TEST(HostileSchema, BranchesThatLeadBackToThemselvesComeToAnEnd) {
  const char* schema = R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a","maxLength":2},{"$ref":"#/$defs/a","minLength":1}]}},
    "properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"null"}}})";
  const auto constraint = compile_or_die(schema_spec(schema, false));
  EXPECT_FALSE(constraint->left_out().empty());
  EXPECT_FALSE(accepts(*constraint, "1"));
}

// With a copy of all that was joined before for each further part this would take a minute.
TEST(HostileSchema, PartsThatAreJoinsThemselvesAreJoined) {
  constexpr int kParts = 60;
  std::string inner;
  for (int i = 0; i < kParts; ++i) inner += fmt::format(R"({}{{"properties":{{"p{}":{{"maxLength":{}}}}}}})", i > 0 ? "," : "", i, i);
  std::string outer;
  for (int i = 0; i < kParts; ++i) outer += fmt::format(R"({}{{"properties":{{"a":{{"allOf":[{}]}}}}}})", i > 0 ? "," : "", inner);
  const auto constraint = compile_or_die(schema_spec(R"({"allOf":[)" + outer + "]}"));
  EXPECT_TRUE(accepts(*constraint, R"({"a":{"p2":"ab"}})"));
  EXPECT_FALSE(accepts(*constraint, R"({"a":{"p2":"abc"}})"));
}

TEST(HostileSchema, APatternOfParenthesesIsRefused) {
  const ConstraintSpec pattern{ConstraintSpec::Regex{std::string(300'000, '(')}, "guided_regex"};
  const auto refused = toy_compiler().compile(pattern);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace braid::test
