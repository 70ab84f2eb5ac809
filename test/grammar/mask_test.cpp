#include "grammar/walk.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace braid::test {
namespace {

ConstraintSpec regex(std::string pattern) { return {ConstraintSpec::Regex{std::move(pattern)}, "regex"}; }

TEST(TokenMask, AllowsExactlyTheTokensThatTheAutomatonReads) {
  std::vector<ConstraintSpec> specs = {
      {ConstraintSpec::JsonObject{}, ""},
      schema_spec(
          R"({"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":9},"age":{"type":"integer"}},"required":["name"]})"),
      schema_spec(R"({"type":"array","items":{"type":"array","items":{"type":"string"},"maxItems":300},"minItems":2,"maxItems":70})"),
      schema_spec(R"({"type":"object","additionalProperties":{"type":"string","minLength":40}})"),
      schema_spec(R"({"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"array","items":{"type":["string","null"]}}]})"),
      schema_spec(R"({"type":"string","pattern":"^[a-e]{2,90}x?\"é*$"})"),
      regex("(a|ab|abc|b){3,200}c*"),
      regex("([a-z]+ ?){2,5}\\.")};
  ConstraintSpec::Sequence call;
  call.parts = {{ConstraintSpec::FreeUntil{"<tool>"}, ""}, {ConstraintSpec::JsonObject{}, ""}, {ConstraintSpec::Literal{"aaaa"}, ""}};
  specs.push_back({call, ""});
  const auto tokens = toy_tokens();
  std::mt19937 random(3);
  for (const ConstraintSpec& spec : specs) {
    const auto constraint = compile_or_die(spec);
    for (int walk = 0; walk < 8; ++walk) {
      const auto state = constraint->start({});
      std::string text;
      for (int step = 0; step < 40; ++step) {
        const auto allowed = allowed_tokens(*state);
        ASSERT_EQ(allowed, readable_tokens(*constraint, text)) << text;
        const TokenId token = allowed[random() % allowed.size()];
        if (token == kEnd) break;
        state->accept(token);
        text += tokens[static_cast<std::size_t>(token)].bytes;
      }
    }
  }
}

TEST(TokenMask, AllowsOnlyTheEndAfterTheEnd) {
  const auto constraint = compile_or_die({ConstraintSpec::Choice{{"ab", "abc"}}, ""});
  const auto state = constraint->start({});
  for (const char* piece : {"a", "b"}) state->accept(2 + piece[0]);
  EXPECT_EQ(allowed_tokens(*state), (std::vector<TokenId>{kEnd, 2 + 'c'}));
  state->accept(kEnd);
  EXPECT_EQ(allowed_tokens(*state), std::vector<TokenId>{kEnd});
}

TEST(TokenMask, StartsAfterAcceptedTokens) {
  const auto constraint = compile_or_die({ConstraintSpec::Choice{{"ab", "abc"}}, ""});
  const std::vector<TokenId> accepted = {2 + 'a', 2 + 'b', 2 + 'c'};
  EXPECT_EQ(allowed_tokens(*constraint->start(accepted)), std::vector<TokenId>{kEnd});
}

// A literal that a tokenizer would see as a control token stands for that token; free text never holds one.
TEST(TokenMask, AllowsControlTokensOnlyWhereTheyAreNamed) {
  constexpr TokenId kTool = 1;
  ConstraintSpec::Sequence parts;
  parts.parts = {{ConstraintSpec::FreeUntil{"!"}, ""}, {ConstraintSpec::Literal{"<tool>x"}, ""}};
  const auto state = compile_or_die({parts, ""})->start({});
  const auto before = allowed_tokens(*state);
  EXPECT_FALSE(std::binary_search(before.begin(), before.end(), kTool));
  EXPECT_FALSE(std::binary_search(before.begin(), before.end(), kEnd));
  state->accept(2 + '!');
  EXPECT_EQ(allowed_tokens(*state), std::vector<TokenId>{kTool});
  state->accept(kTool);
  EXPECT_EQ(allowed_tokens(*state), std::vector<TokenId>{2 + 'x'});
}

TEST(TokenMask, FreeTextEndsAtTheFirstTrigger) {
  const auto constraint = compile_or_die({ConstraintSpec::FreeUntil{"aab"}, ""});
  EXPECT_TRUE(accepts(*constraint, "xaaab"));
  EXPECT_TRUE(accepts(*constraint, "aab"));
  EXPECT_FALSE(accepts(*constraint, "aabaab"));
  EXPECT_FALSE(accepts(*constraint, "aa"));
}

}  // namespace
}  // namespace braid::test
