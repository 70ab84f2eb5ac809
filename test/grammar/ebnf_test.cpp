#include "grammar/walk.h"

#include <gtest/gtest.h>

namespace braid::test {
namespace {

ConstraintSpec grammar_spec(std::string text) { return {ConstraintSpec::Grammar{std::move(text)}, "grammar"}; }

void expect_accepts(const std::string& text, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  const auto constraint = compile_or_die(grammar_spec(text));
  for (const std::string& sample : good) EXPECT_TRUE(accepts(*constraint, sample)) << text << "\n" << sample;
  for (const std::string& sample : bad) EXPECT_FALSE(accepts(*constraint, sample)) << text << "\n" << sample;
}

TEST(Gbnf, ReadsAnArithmeticGrammar) {
  expect_accepts(R"gr(
# sums and products
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gr",
                 {"a=1\n", "a +b*(c-12) = d\n", "1=1\n2=2\n"}, {"", "a=1", "a==1\n", "(a=1\n", "A=1\n"});
}

TEST(Gbnf, ReadsListsAndCounts) {
  expect_accepts("root ::= item{2,3} .\nitem ::= \"- \" [^\\r\\n\\x0b]+ \"\\n\"", {"- a\n- b\n!", "- a\n- b\n- c\né"},
                 {"- a\n!", "- \n- b\n!", "- a\n- b\n- c\n- d\n!"});
  expect_accepts("root ::= [a-c]{2} [\\]\\-x]? \"\\u00e9\" | \"q\"{3,}", {"abé", "ab]é", "ab-é", "qqq", "qqqqq"}, {"aé", "qq", "abcé"});
}

TEST(Gbnf, ContinuesRulesOverLines) {
  expect_accepts("root ::= a |\n  b\n  | c\na ::= \"a\"\nb ::= (\n\"b\"\n\"b\" )\nc ::= \"c\"", {"a", "bb", "c"}, {"b", "ab"});
}

TEST(Gbnf, AllowsDirectLeftRecursion) { expect_accepts("root ::= root \"+\" [0-9] | [0-9]", {"1", "1+2+3"}, {"", "+1", "1+"}); }

TEST(Gbnf, AllowsNestingWithoutEnd) {
  std::string deep = "x";
  for (int i = 0; i < 200; ++i) deep = "(" + deep + ")";
  expect_accepts("root ::= \"(\" root \")\" | \"x\"", {"x", "((x))", deep}, {"((x)", "(x))", "()"});
}

TEST(Lark, ReadsTheSameArithmetic) {
  expect_accepts(R"gr(
?start: sum
// left recursion is usual here
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | NAME
     | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
)gr",
                 {"1", "1 + 2*x", "-(a - 3.5e2)", "a*b*c", " 1 "}, {"", "1 +", "(1", "1 2"});
}

TEST(Lark, ReadsTerminalsAndRepetitions) {
  expect_accepts("start: GREETING [\" \" name] \"!\"~1..3\nname: /[A-Z][a-z]*/ | \"x\"..\"z\"\nGREETING.2: \"hi\"i | \"hello\"",
                 {"hi!", "HI!!", "hello Bob!!!", "Hi y!"}, {"hi", "Hello!", "hi bob!", "hi!!!!"});
}

TEST(Lark, ReadsModifiersInEitherOrder) { expect_accepts("?!start: a b\n!?a: /x/u\n!b: \"y\"", {"xy"}, {"x", "y"}); }

// These four are as the package lark has it.
TEST(Lark, ABackslashThatEscapesNothingIsText) {
  expect_accepts(R"gr(start: "\." "a\\b\"" "\x41\u00e9\n" "\d\/")gr", {"\\.a\\b\"A\xC3\xA9\n\\d\\/"}, {".a\\b\"A\xC3\xA9\nd/"});
}

TEST(Lark, AllowsBlanksBeforeQuantifiersAndAroundRanges) {
  expect_accepts("start: \"a\" * x ~ 1 .. 2 [\"c\" .. \"e\"] y ?\nx: \"x\"\n?y: \"y\"", {"x", "aaxx", "xdy", "xxcy"},
                 {"a", "axxx", "xf", "xyy"});
}

TEST(Lark, ReadsBothKindsOfCommentsAndNegativePriorities) {
  expect_accepts("# one\nstart: A \"#\" // two\n  | \"b\" # three\nA.-2: \"a\" \"//\"", {"a//#", "b"}, {"a", "b "});
}

TEST(Lark, KnowsTheCommentsOfTheCommonLibrary) {
  expect_accepts("start: C | S | Q\n%import common.C_COMMENT -> C\n%import common.SH_COMMENT -> S\n%import common.SQL_COMMENT -> Q",
                 {"/* a */", "/***/", "/* * / */", "#x", "--"}, {"/*/", "/* */ */", "#\n", "-"});
}

TEST(Lark, MayMatchWhatDefinesRulesInGbnf) { expect_accepts("// bnf\nstart: NAME \"::=\" NAME\nNAME: /[a-z]/", {"a::=b"}, {"a:=b"}); }

TEST(GrammarText, RefusesWithTheLine) {
  for (const auto& [text, what] :
       std::initializer_list<std::pair<const char*, const char*>>{{"root ::= a", "no rule named a"},
                                                                  {"a ::= \"x\"", "root"},
                                                                  {"root ::= \"x\"\n\nroot ::= \"y\"", "line 3"},
                                                                  {"root ::= (\"x\"", "group has no end"},
                                                                  {"root ::= \"x", "line 1"},
                                                                  {"root ::= [z-a]", "range"},
                                                                  {"root ::= \"x\"{3,2}", "repetition"},
                                                                  {"root ::= <think>", "tokens"},
                                                                  {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= a | \"z\"", "left recursion"},
                                                                  {"root ::= \"a\" root", "no finite text"},
                                                                  {"root ::= \"\\q\"", "escape"},
                                                                  {"start: a", "no rule named a"},
                                                                  {"a: \"x\"", "start"},
                                                                  {"start: \"x\"\n%declare Y", "%declare"},
                                                                  {"start: /a(?=b)/", "look-ahead"},
                                                                  {"start: \"x\"\n%import common.NOPE", "NOPE"},
                                                                  {"start: x{\"a\"}", "templates"},
                                                                  {"", "start"},
                                                                  {"root ::= \"x\"{}", "repetition"},
                                                                  {"root ::= \"x\"{,3}", "repetition"},
                                                                  {"start: /a/x\nx: \"b\"", "flag x"},
                                                                  {"start: /a", "no end"}}) {
    const auto refused = toy_compiler().compile(grammar_spec(text));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().param, "grammar");
    EXPECT_NE(refused.error().message.find(what), std::string::npos) << text << ": " << refused.error().message;
  }
}

// The text of a custom tool: a grammar within a string of JSON.
TEST(TextMember, BindsTheCharactersOfTheString) {
  const auto member = [](const char* text, bool is_regex) {
    return compile_or_die({ConstraintSpec::TextMember{"input", text, is_regex}, "tools[0].format"});
  };
  const auto regex = member(R"re([a-z]+"\d\n?)re", true);
  EXPECT_TRUE(accepts(*regex, R"({"input": "ab\"7"})"));
  EXPECT_TRUE(accepts(*regex, R"({"input":"ab\"7\n"})"));
  EXPECT_FALSE(accepts(*regex, R"({"input": "ab7"})"));
  EXPECT_FALSE(accepts(*regex, R"({"input": "xab\"7 "})"));
  EXPECT_FALSE(accepts(*regex, R"({"text": "ab\"7"})"));
  const auto lark = member(R"(start: begin hunk+ end
begin: "*** Begin" LF
end: "*** End" LF?
hunk: "*** Add: " /(.+)/ LF line+
line: "+" /(.*)/ LF
%import common.LF
)",
                           false);
  EXPECT_TRUE(accepts(*lark, R"({"input": "*** Begin\n*** Add: a\\b.txt\n+say \"hi\"\n+\n*** End"})"));
  EXPECT_FALSE(accepts(*lark, R"({"input": "*** Begin\n*** End"})"));
  EXPECT_FALSE(accepts(*lark, R"({"input": "*** Begin\n*** Add: a\nsay\n*** End"})"));
}

// Left recursion, an unknown rule, a text without an end, what Lark cannot say here: any text, and the answer tells which.
TEST(TextMember, IsAnyTextWhereItsFormCannotBeHonoured) {
  for (const auto& [text, is_regex] : std::initializer_list<std::pair<const char*, bool>>{{"start: missing", false},
                                                                                          {"start: a\na: b \"x\"\nb: a \"y\"", false},
                                                                                          {"start: \"x\" start", false},
                                                                                          {"(?<=a)b", true},
                                                                                          {"(", true}}) {
    const auto any = compile_or_die({ConstraintSpec::TextMember{"input", text, is_regex}, "tools[0].format"});
    ASSERT_EQ(any->left_out().size(), 1U) << text;
    EXPECT_EQ(any->left_out().front(), "tools[0].format");
    EXPECT_TRUE(accepts(*any, R"({"input": "any\ntext"})")) << text;
    EXPECT_FALSE(accepts(*any, R"({"input": 1})")) << text;
  }
}

}  // namespace
}  // namespace braid::test
