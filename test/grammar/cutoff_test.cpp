// Where a grammar is cut off, by the depth of its calls or by the number of its threads, the answer stays within the language.
#include "grammar/walk.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

std::shared_ptr<const Constraint> cut_off_grammar(std::string text) {
  return compile_or_die({ConstraintSpec::Grammar{std::move(text)}, "grammar"});
}

TokenId token_of(const std::string& bytes) {
  const auto tokens = toy_tokens();
  const auto at = std::find_if(tokens.begin(), tokens.end(), [&](const auto& token) { return !token.control && token.bytes == bytes; });
  return static_cast<TokenId>(at - tokens.begin());
}

// Takes `wanted` wherever it is allowed among the first 700 tokens, otherwise what ends the text or something in it.
Walk insisting_walk(const Constraint& constraint, TokenId wanted) {
  const auto tokens = toy_tokens();
  const auto state = constraint.start({});
  Walk walk;
  for (std::size_t i = 0; i < 4000 && !walk.ended; ++i) {
    const auto allowed = allowed_tokens(*state);
    if (i < 4 || (i > 250 && i < 260) || (i > 500 && i < 520)) {  // around the cut-offs
      EXPECT_EQ(allowed, readable_tokens(constraint, walk.text)) << walk.text;
    }
    if (allowed.empty()) break;
    TokenId token = allowed.front();
    for (const TokenId better : {i < 700 ? wanted : kEnd, kEnd, token_of("]"), token_of("\"")})
      if (std::binary_search(allowed.begin(), allowed.end(), better)) {
        token = better;
        break;
      }
    walk.ended = token == kEnd;
    if (!walk.ended) walk.text += tokens[static_cast<std::size_t>(token)].bytes;
    state->accept(token);
  }
  return walk;
}

const char* const kNestedArrays = R"({"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[
  {"type":"array","items":{"$ref":"#/$defs/x"},"minItems":1},{"type":"string","minLength":30,"maxLength":50}]}}})";

// As many closing brackets as opening ones outside of strings, and none before its opening one.
bool is_balanced(const std::string& text, char open, char close) {
  std::ptrdiff_t depth = 0;
  bool in_string = false;
  for (const char byte : text) {
    if (byte == '"') in_string = !in_string;
    if (in_string) continue;
    depth += byte == open ? 1 : byte == close ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Rules that begin alike, until their number is beyond what is followed; only the last may go on with "al".
std::string crowded_grammar(int alternatives) {
  std::string text = "root ::= r0 \".\"";
  for (int i = 1; i < alternatives; ++i) text += fmt::format(" | r{} \".\"", i);
  for (int i = 0; i < alternatives; ++i) {
    const auto long_text = [&](char c) { return std::string(40, c) + std::to_string(i); };
    text += fmt::format("\nr{0} ::= \"t\" p{0} \"{1}\"", i, long_text('z'));
    text += fmt::format("\np{0} ::= \"a\" (u{0} | v{0} | w{0}) \"{1}\"", i, long_text('y'));
    text += fmt::format("\nu{} ::= \"{}{}\"", i, i + 1 == alternatives ? "l" : "0", long_text('u'));
    text += fmt::format("\nv{0} ::= \"1{1}\"\nw{0} ::= \"2{2}\"", i, long_text('v'), long_text('w'));
  }
  return text;
}

// A model that will not stop opening brackets is led back, as is one that prefers the way that is not followed.
TEST(CutOff, LeadsTheAnswerToItsEnd) {
  for (const char* text : {R"gr(root ::= "(" root ")" | "x")gr", R"gr(root ::= "(" root ")" | "a text of more than thirty-two bytes")gr"}) {
    const Walk walk = insisting_walk(*cut_off_grammar(text), token_of("("));
    EXPECT_TRUE(walk.ended && is_balanced(walk.text, '(', ')')) << text << walk.text.size();
    EXPECT_GT(walk.text.size(), 1000U) << text;
  }
  for (const char* schema : {R"({"type":"array"})", kNestedArrays})
    for (const char* opening : {"[", "[["}) {
      const Walk walk = insisting_walk(*compile_or_die(schema_spec(schema)), token_of(opening));
      EXPECT_TRUE(walk.ended && is_balanced(walk.text, '[', ']')) << schema << walk.text.size();
      EXPECT_GT(walk.text.size(), 300U) << schema;
    }
  const Walk walk = insisting_walk(*cut_off_grammar(crowded_grammar(40)), token_of("al"));
  EXPECT_TRUE(walk.ended && walk.text.find('z') != std::string::npos) << walk.text;
}

// Where all that is left to try is cut off, that is said when compiling.
TEST(CutOff, RefusesWhatAlwaysNestsTooDeep) {
  const auto nested = [](int rules) {
    std::string text = "root ::= r0";
    for (int i = 0; i < rules; ++i) text += fmt::format("\nr{0} ::= \"(\" r{1} \")\"", i, i + 1);
    return ConstraintSpec{ConstraintSpec::Grammar{text + fmt::format("\nr{} ::= \"{}\"", rules, std::string(40, 'x'))}, "grammar"};
  };
  EXPECT_TRUE(accepts(*compile_or_die(nested(500)), std::string(500, '(') + std::string(40, 'x') + std::string(500, ')')));
  const auto refused = toy_compiler().compile(nested(600));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("deeper"), std::string::npos) << refused.error().message;
}

// No token of the vocabulary has the bytes that the text needs.
TEST(CutOff, AllowsNothingWhereNoTokenGoesOn) {
  const grammar::Compiler compiler([] { return grammar::Vocabulary({{"</s>", true}, {"a", false}}, {kEnd}); });
  const auto constraint = *compiler.compile({ConstraintSpec::Literal{"ab"}, ""});
  const auto state = constraint->start({});
  std::vector<std::uint32_t> mask(1);
  state->fill_mask(mask);
  EXPECT_EQ(mask[0], 1U << 1);
  state->accept(1);
  state->fill_mask(mask);
  EXPECT_EQ(mask[0], 0U);
}

}  // namespace
}  // namespace braid::test
