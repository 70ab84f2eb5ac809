// What tells one way through a grammar from another: where its calls return to, and how often a loop has gone round. Each rule here
// calls itself or is long, so that it stays a call.
#include "grammar/walk.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

std::shared_ptr<const Constraint> grammar_of(std::string text) {
  return compile_or_die({ConstraintSpec::Grammar{std::move(text)}, "grammar"});
}

TEST(Threads, ReturnEachToItsOwnCaller) {
  const auto constraint = grammar_of(R"gr(
root ::= a | b
a    ::= item "x"
b    ::= item "y"
item ::= "(" item* ")"
)gr");
  EXPECT_TRUE(accepts(*constraint, "(())x"));
  EXPECT_TRUE(accepts(*constraint, "(())y"));
  EXPECT_FALSE(accepts(*constraint, "(())"));
  EXPECT_FALSE(accepts(*constraint, "(())z"));
}

TEST(Threads, KeepTheCallersOfALongText) {
  const auto constraint = grammar_of(R"gr(
root ::= "{" item "}"
item ::= "(" item* ")" | "[" item* "]"
)gr");
  std::string siblings;
  for (int i = 0; i < 500; ++i) siblings += i % 2 == 0 ? "([])" : "[()]";
  EXPECT_TRUE(accepts(*constraint, "{([" + siblings + "])}"));
  EXPECT_FALSE(accepts(*constraint, "{([" + siblings + ")"));
  EXPECT_FALSE(accepts(*constraint, "{([" + siblings + "]]"));
}

TEST(Threads, CountEachTheirOwnRounds) {
  const auto constraint = grammar_of(R"gr(
root ::= item{40,60} "b"
item ::= "(" item ")" | "a" | "aa"
)gr");
  for (const std::size_t length : {40U, 41U, 60U, 80U, 119U, 120U})
    EXPECT_TRUE(accepts(*constraint, std::string(length, 'a') + "b")) << length;
  for (const std::size_t length : {0U, 39U, 121U}) EXPECT_FALSE(accepts(*constraint, std::string(length, 'a') + "b")) << length;
}

}  // namespace
}  // namespace braid::test
