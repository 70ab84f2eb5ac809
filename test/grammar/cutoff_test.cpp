// Where following a grammar is cut off, by the depth of its calls or by the number of its ways, the answer stays within the language.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "walk.h"

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

// Takes `wanted` wherever it is allowed, otherwise the end, otherwise what is allowed first.
Walk insisting_walk(const Constraint& constraint, TokenId wanted, std::size_t most_tokens = 3000) {
  const auto tokens = toy_tokens();
  const auto state = constraint.start({});
  Walk walk;
  for (std::size_t i = 0; i < most_tokens && !walk.ended; ++i) {
    const auto allowed = allowed_tokens(*state);
    if (allowed.empty()) break;
    const TokenId token = std::binary_search(allowed.begin(), allowed.end(), wanted) ? wanted : allowed.front();
    walk.ended = token == kEnd;
    if (!walk.ended) walk.text += tokens[static_cast<std::size_t>(token)].bytes;
    state->accept(token);
  }
  return walk;
}

const char* const kNestedArrays = R"({"$ref":"#/$defs/x","$defs":{"x":{"anyOf":[
  {"type":"array","items":{"$ref":"#/$defs/x"},"minItems":1},{"type":"string","minLength":30,"maxLength":50}]}}})";

// As many closing brackets as opening ones, and none before its opening one.
bool is_balanced(const std::string& text, char open, char close) {
  std::ptrdiff_t depth = 0;
  for (const char byte : text) {
    depth += byte == open ? 1 : byte == close ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Rules that begin alike, until their number is beyond what is followed; only the last may go on with "al".
std::string crowded_grammar(int alternatives) {
  std::string text = "root ::= r0";
  for (int i = 1; i < alternatives; ++i) text += fmt::format(" | r{}", i);
  for (int i = 0; i < alternatives; ++i) {
    const auto long_text = [&](char c) { return std::string(40, c) + std::to_string(i); };
    text += fmt::format("\nr{0} ::= \"t\" p{0} \"{1}\"", i, long_text('z'));
    text += fmt::format("\np{0} ::= \"a\" (u{0} | v{0} | w{0}) \"{1}\"", i, long_text('y'));
    text += fmt::format("\nu{} ::= \"{}{}\"", i, i + 1 == alternatives ? "l" : "0", long_text('u'));
    text += fmt::format("\nv{0} ::= \"1{1}\"\nw{0} ::= \"2{2}\"", i, long_text('v'), long_text('w'));
  }
  return text;
}

TEST(CutOff, IsNeverTheEndOfTheText) {
  for (const char* text : {R"gr(root ::= "(" root ")" | "x")gr", R"gr(root ::= "(" root ")" | "a text of more than thirty-two bytes")gr"}) {
    const Walk walk = insisting_walk(*cut_off_grammar(text), token_of("("));
    EXPECT_TRUE(!walk.ended || is_balanced(walk.text, '(', ')')) << text;
  }
  for (const char* schema : {R"({"type":"array"})", kNestedArrays})
    for (const char* opening : {"[", "[["}) {
      const Walk walk = insisting_walk(*compile_or_die(schema_spec(schema)), token_of(opening));
      EXPECT_TRUE(!walk.ended || is_balanced(walk.text, '[', ']')) << schema;
    }
  const Walk walk = insisting_walk(*cut_off_grammar(crowded_grammar(40)), token_of("al"));
  EXPECT_TRUE(!walk.ended || walk.text.find('z') != std::string::npos) << walk.text;
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
