// What a client may ask an answer to satisfy, to trouble the server.
#include <gtest/gtest.h>

#include <string>

#include "walk.h"

namespace braid::test {
namespace {

TEST(HostileSchema, ConstantsThatDifferAllowNothing) {
  EXPECT_FALSE(toy_compiler().compile(schema_spec(R"({"allOf":[{"const":1},{"const":2}]})")));
  const auto same = compile_or_die(schema_spec(R"({"allOf":[{"const":1},{"const":1}]})"));
  EXPECT_TRUE(accepts(*same, "1"));
  EXPECT_FALSE(accepts(*same, "2"));
}

TEST(HostileSchema, APatternOfParenthesesIsRefused) {
  const ConstraintSpec pattern{ConstraintSpec::Regex{std::string(300'000, '(')}, "guided_regex"};
  const auto refused = toy_compiler().compile(pattern);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace braid::test
