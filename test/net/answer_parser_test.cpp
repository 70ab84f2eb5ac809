// What the parser of answers makes of each family's syntax, however the text is cut.
#include "net/generation/parser/answer_parser.h"

#include "net/fake_codec.h"
#include "net/generation/parser/whole_object.h"
#include "net/json/parse.h"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {
namespace {

using net::AnswerSyntax;
using net::Delta;

// "T(text)", "R(reasoning)", "C0(name)", "A0(arguments)" in order.
std::string print(const std::vector<Delta>& deltas) {
  std::string out;
  for (const Delta& delta : deltas) {
    if (const auto* text = std::get_if<net::TextDelta>(&delta)) out += "T(" + text->text + ")";
    if (const auto* reasoning = std::get_if<net::ReasoningDelta>(&delta)) out += "R(" + reasoning->text + ")";
    if (const auto* begin = std::get_if<net::ToolCallBegin>(&delta)) out += "C" + std::to_string(begin->index) + "(" + begin->name + ")";
    if (const auto* arguments = std::get_if<net::ToolCallArguments>(&delta))
      out += "A" + std::to_string(arguments->index) + "(" + arguments->text + ")";
  }
  return out;
}

// The deltas of `text` in pieces of `sizes`, used in turn.
std::string parse(const AnswerSyntax& syntax, std::string_view text, const std::vector<std::size_t>& sizes, bool cut) {
  net::AnswerParser parser(syntax, 1);
  std::vector<Delta> joined;
  for (std::size_t i = 0; !text.empty() && !parser.ended(); ++i) {
    const std::size_t size = std::min(text.size(), sizes[i % sizes.size()]);
    std::vector<Delta> deltas;
    parser.feed(text.substr(0, size), deltas);
    for (Delta& delta : deltas) append_joined(joined, std::move(delta));
    text.remove_prefix(size);
  }
  if (!parser.ended()) {
    std::vector<Delta> deltas;
    parser.finish(cut, deltas);
    for (Delta& delta : deltas) append_joined(joined, std::move(delta));
  }
  return print(joined);
}

// The same for every way of cutting that is tried.
std::string parse_cut_anywhere(const AnswerSyntax& syntax, std::string_view text, bool cut = false) {
  const std::string whole = parse(syntax, text, {text.size() + 1}, cut);
  EXPECT_EQ(parse(syntax, text, {1}, cut), whole) << text;
  std::mt19937 random(7);
  for (int i = 0; i < 8; ++i) {
    std::vector<std::size_t> sizes(5);
    for (std::size_t& size : sizes) size = 1 + random() % 9;
    EXPECT_EQ(parse(syntax, text, sizes, cut), whole) << text;
  }
  return whole;
}

AnswerSyntax tools_of(std::string_view chat_template) {
  AnswerSyntax syntax;
  syntax.calls = &net::call_syntax_of(chat_template);
  syntax.functions = {"f", "g", "get_weather"};
  find_control_markers(syntax, FakeCodec());
  return syntax;
}

AnswerSyntax thinking() {
  AnswerSyntax syntax;
  syntax.reasoning = {"<think>", "</think>"};
  return syntax;
}

struct TextCase {
  std::string_view text;
  std::string_view deltas;
};

void expect(const AnswerSyntax& syntax, std::initializer_list<TextCase> cases) {
  for (const TextCase& each : cases) EXPECT_EQ(parse_cut_anywhere(syntax, each.text), each.deltas) << each.text;
}

TEST(AnswerParser, WithoutSyntaxEverythingIsText) {
  expect({}, {{"", ""}, {" a <think>b</think> <tool_call>{} ", "T( a <think>b</think> <tool_call>{} )"}});
}

TEST(AnswerParser, ReasoningStandsAtTheBeginningOnly) {
  expect(thinking(), {{"<think>\na b\n</think>\n\nc ", "R(a b)T(c )"},
                      {"\n<think>a</think>", "R(a)"},
                      {"<think></think>b", "T(b)"},
                      {"<think>\n\n</think>\n\nb", "T(b)"},
                      {"a <think>b</think>", "T(a <think>b</think>)"},
                      {"<think>a <thi </thin </think>b</think><think>c", "R(a <thi </thin)T(b</think><think>c)"},
                      {"<think>never ends </thin", "R(never ends </thin)"},
                      {"<thi", "T(<thi)"},
                      {"< think>", "T(< think>)"},
                      {"<<think>a", "T(<<think>a)"},
                      {"  \n", "T(  \n)"},
                      {"a\n\n", "T(a\n\n)"}});
}

TEST(AnswerParser, ThePromptMayHaveBegunTheReasoning) {
  AnswerSyntax syntax = thinking();
  syntax.begins_in_reasoning = true;
  expect(syntax, {{"\na\n</think>\n\nb", "R(a)T(b)"}, {"a", "R(a)"}, {"</think>b", "T(b)"}, {"\n", ""}});
}

TEST(AnswerParser, Hermes) {
  expect(tools_of("<tool_call>"),
         {{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", R"(C0(f)A0({"a": 1}))"},
          {"Wait.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n", "T(Wait.)C0(f)A0({})"},
          {R"(<tool_call>{"name":"f","arguments":{"s":"}\"{\\"}}</tool_call><tool_call>{"name":"g","arguments":{}}</tool_call>)",
           R"(C0(f)A0({"s":"}\"{\\"})C1(g)A1({}))"},
          {R"(<tool_call>{"arguments":{"a":[1,2]},"name":"f"}</tool_call> done)", R"(C0(f)A0({"a":[1,2]})T( done))"},
          {R"(<tool_call>{"name":"f","arguments":"{\"a\":1}"}</tool_call>)", R"(C0(f)A0({"a":1}))"},
          {R"(<tool_call>{"name":"f"}</tool_call>)", "C0(f)A0({})"},
          {R"(<tool_call>{"name":"f","arguments":null,"x":[{}]}</tool_call>)", "C0(f)A0({})"},
          {R"(<tool_call>[{"name":"f","arguments":{}},{"name":"g","arguments":{}}]</tool_call>)", "C0(f)A0({})C1(g)A1({})"}});
}

TEST(AnswerParser, WhatTurnsOutToBeNoCallIsText) {
  expect(tools_of("<tool_call>"), {{"<tool_call>hello</tool_call>", "T(<tool_call>hello</tool_call>)"},
                                   {"a <tool_call> {\"name\": 1}", "T(a <tool_call> {\"name\": 1})"},
                                   {"<tool_call>{\"name\": \"f\", \"arguments\": 7}", "T(<tool_call>{\"name\": \"f\", \"arguments\": 7})"},
                                   {"<tool_call>{\"name\": \"f\"", "T(<tool_call>{\"name\": \"f\")"},
                                   {"<tool_call><tool_call>{\"name\":\"f\"}", "T(<tool_call>)C0(f)A0({})"},
                                   {"</tool_call> x", "T(</tool_call> x)"},
                                   {"a < b", "T(a < b)"}});
}

TEST(AnswerParser, ACallThatBreaksOffIsCompletedToValidJson) {
  expect(tools_of("<tool_call>"),
         {{R"(<tool_call>{"name":"f","arguments":{"a":"x)", R"(C0(f)A0({"a":"x"}))"},
          {R"(<tool_call>{"name":"f","arguments":{"a":[1,)", R"(C0(f)A0({"a":[1]}))"},
          {R"(<tool_call>{"name":"f","arguments":{"a":1}</tool_call>)", R"(C0(f)A0({"a":1}))"},
          {R"(<tool_call>{"name":"f","arguments":{"a":"b"c"}}</tool_call>)", R"(C0(f)A0({"a":"b"})T(c"}}</tool_call>))"},
          {"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"1\n2\"}}", R"(C0(f)A0({"a":"1\n2"}))"}});
  EXPECT_EQ(parse_cut_anywhere(tools_of("<tool_call>"), R"(<tool_call>{"name":"f","arguments":{"a":"x)", true), R"(C0(f)A0({"a":"x))");
}

// A text, calls behind it in a family's own form, and where they begin.
struct Calls {
  std::string_view chat_template;
  std::string_view said;
  std::string_view calls;
};

constexpr Calls kCalls[] = {
    {"<tool_call>", "Wait. ",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>"},
    {"<tool_call>", "", R"(<tool_call>{"arguments":{"a":[1,2]},"name":"f"}</tool_call>)"},
    {"<|python_tag|>", "Hm.", R"(<|python_tag|>{"name": "g", "parameters": {"a": "x"}})"},
    {"[func_name1(", "So", "<|python_start|>[f(x=-1.5e3), g(**{\"a\": 1})]<|python_end|>"},
    {"<|tool_call_start|>", "a", "<|tool_call_start|>[f(a=1), get_weather(city='x')]<|tool_call_end|>"},
    {"[TOOL_CALLS]", "Hm.", R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])"},
    {"[TOOL_CALLS] [ARGS]", "Hm.", R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]abc123def[ARGS]{})"},
    {"<function=", "a", R"(<function=f>{"a": 1}</function>)"},
    {"<tool_call> <function= <parameter=", "Ok", "<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n</function>\n</tool_call>"},
    {"<arg_key> <tool_call>", "", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>"},
    {"<｜tool▁call▁begin｜>", "a",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"<|tool_call_argument_begin|>", "a",
     R"(<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>)"},
    {"<|START_ACTION|>", "a", R"(<|START_ACTION|>[{"name": "f", "arguments": {"a": 1}}]<|END_ACTION|>)"},
    {"<TOOLCALL>", "a", R"(<TOOLCALL>[{"name": "f", "arguments": {"a": 1}}]</TOOLCALL>)"},
    {"<|tool_call|>", "a", R"(<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]<|/tool_call|>)"},
    {"gpt-oss: <|channel|> <|message|>", "",
     "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>"},
    {"unknown", "Ok ", R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"},
};

// What max_tokens leaves of a call is either told as one or not at all; the first byte of a marker may be any text.
TEST(AnswerParser, ACallThatIsCutIsNoText) {
  for (const Calls& each : kCalls) {
    AnswerSyntax syntax = tools_of(each.chat_template);
    net::find_reasoning(syntax, FakeCodec(), each.chat_template, "");
    const std::string text = std::string(each.said).append(each.calls);
    for (std::size_t length = each.said.size() + 2; length <= text.size(); ++length) {
      const std::string deltas = parse(syntax, text.substr(0, length), {length}, true);
      EXPECT_EQ(parse(syntax, text.substr(0, length), {1}, true), deltas);
      const std::size_t calls = std::min(deltas.find("C0("), deltas.size());
      const std::string said(each.said.substr(0, each.said.find_last_not_of(' ') + 1));
      EXPECT_EQ(deltas.substr(0, calls), said.empty() ? "" : "T(" + said + ")") << text.substr(0, length);
      EXPECT_EQ(deltas.find("T(", calls), std::string::npos) << text.substr(0, length);
    }
  }
}

// Without a marker, what was cut is a call as soon as a declared function is being named.
TEST(AnswerParser, ACutAnswerThatMayBeTextIsText) {
  const std::pair<std::string_view, std::pair<std::string_view, std::string_view>> cases[] = {
      {"<tool_call>", {"a <", "T(a <)"}},
      {"<tool_call>", {"a <ta", "T(a <ta)"}},
      {"<|python_tag|>", {R"({"na)", R"(T({"na))"}},
      {"<|python_tag|>", {R"({"name": ")", ""}},
      {"<|python_tag|>", {R"({"name": "get_we)", ""}},
      {"<|python_tag|>", {R"({"name": "Anna)", R"(T({"name": "Anna))"}},
      {"<|python_tag|>", {R"({"type": "function", "name": "f", "param)", ""}},
      {"<|python_tag|>", {R"({"id": "Anna)", R"(T({"id": "Anna))"}},
      {"<|python_tag|>", {R"({"parameters": {"a")", ""}},
      {"<|python_tag|>", {R"({"name": "f", "parameters": {}}; {"na)", "C0(f)A0({})"}},
      {"[func_name1(", {"[", "T([)"}},
      {"[func_name1(", {"[get_w", ""}},
      {"[func_name1(", {"[get_weather(ci", ""}},
      {"[func_name1(", {"[link](u", "T([link](u)"}},
      {"unknown", {"```js", "T(```js)"}},
      {"unknown", {"```json\n{\"ci", "T(```json\n{\"ci)"}},
      {"unknown", {"```json\n{\"name\": \"f\", ", ""}},
  };
  for (const auto& [chat_template, each] : cases) EXPECT_EQ(parse_cut_anywhere(tools_of(chat_template), each.first, true), each.second);
  EXPECT_EQ(parse_cut_anywhere(thinking(), "<thi", true), "");
  EXPECT_EQ(parse_cut_anywhere(thinking(), "<think>a </thi", true), "R(a)");
  EXPECT_EQ(parse_cut_anywhere(thinking(), "a <thi", true), "T(a <thi)");
}

TEST(AnswerParser, Llama3Json) {
  expect(tools_of("<|python_tag|>"),
         {{R"({"name": "f", "parameters": {"a": 1}})", R"(C0(f)A0({"a": 1}))"},
          {R"( {"type": "function", "name": "f", "parameters": {}}; {"name": "f", "parameters": {}})", "C0(f)A0({})C1(f)A1({})"},
          {R"(<|python_tag|>{"name": "g", "parameters": {}})", "C0(g)A0({})"},
          {R"({"name": "Anna", "age": 3})", R"(T({"name": "Anna", "age": 3}))"},
          {R"({"name": "h", "parameters": {}})", R"(T({"name": "h", "parameters": {}}))"},
          {R"({"city": "Paris"})", R"(T({"city": "Paris"}))"},
          {R"(See {"name": "f", "parameters": {}})", R"(T(See {"name": "f", "parameters": {}}))"}});
}

TEST(AnswerParser, Pythonic) {
  expect(tools_of("[func_name1("), {{"[f(a=1, b='it\\'s \"x\"', c=[1, 2,], d={'k': None}, e=(True, False))]",
                                     R"(C0(f)A0({"a":1,"b":"it's \"x\"","c":[1,2],"d":{"k": null},"e":[true,false]}))"},
                                    {"[f(), get_weather(city=\"Paris\")]", R"(C0(f)A0({})C1(get_weather)A1({"city":"Paris"}))"},
                                    {"<|python_start|>[f(x=-1.5e3)]<|python_end|>", R"(C0(f)A0({"x":-1.5e3}))"},
                                    {"[f(**{\"a\": [1, \"b\"]}), g( **{} )]", R"(C0(f)A0({"a": [1, "b"]})C1(g)A1({}))"},
                                    {"[h(**{})]", "T([h(**{})])"},
                                    {"[1, 2, 3]", "T([1, 2, 3])"},
                                    {"[link](url)", "T([link](url))"},
                                    {"[h(a=1)]", "T([h(a=1)])"},
                                    {"[f(1)]", "T([f(1)])"},
                                    {"[f(a=\"\\x41\\u00e9\\q\n\")]", R"(C0(f)A0({"a":"\u0041\u00e9\\q\n"}))"}});
  expect(tools_of("<|tool_call_start|>"), {{"<|tool_call_start|>[f(a=1)]<|tool_call_end|>ok", R"(C0(f)A0({"a":1})T(ok))"}});
}

TEST(AnswerParser, Mistral) {
  expect(tools_of("[TOOL_CALLS]"),
         {{R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])", R"(C0(f)A0({"a": 1})C1(g)A1({}))"},
          {R"([TOOL_CALLS] {"name": "f", "arguments": {}})", "C0(f)A0({})"},
          {R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]abc123def[ARGS]{})", R"(C0(f)A0({"a": 1})C1(g)A1({}))"},
          {R"(Hm.[TOOL_CALLS]f{"a": 1})", R"(T(Hm.)C0(f)A0({"a": 1}))"},
          {"[TOOL_CALLS] no such thing", "T([TOOL_CALLS] no such thing)"}});
}

TEST(AnswerParser, NamedForms) {
  expect(tools_of("<function="),
         {{R"(<function=f>{"a": 1}</function>)", R"(C0(f)A0({"a": 1}))"}, {R"(a <function=f> no)", R"(T(a <function=f> no))"}});
  expect(tools_of("<｜tool▁call▁begin｜>"), {{"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
                                              "1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}"
                                              "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                                              R"(C0(f)A0({"a": 1})C1(g)A1({}))"}});
  expect(tools_of("<|tool_call_argument_begin|>"),
         {{R"(<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|><|tool_calls_section_end|>)",
           R"(C0(f)A0({"a": 1}))"}});
}

TEST(AnswerParser, TaggedArguments) {
  AnswerSyntax coder = tools_of("<tool_call> <function= <parameter=");
  coder.texts = {{"f", "s"}};
  expect(coder, {{"Ok\n<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\n12\n</"
                  "parameter>\n<parameter=l>\n[1, \"a\"]\n"
                  "</parameter>\n<parameter=t>\na \"b\"\nc\n</parameter>\n</function>\n</tool_call>",
                  R"(T(Ok)C0(f)A0({"s":"12","n":12,"l":[1, "a"],"t":"a \"b\"\nc"}))"},
                 {"<tool_call>\n<function=f>\n</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>",
                  "C0(f)A0({})C1(g)A1({})"},
                 {"<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n<parameter=m>\n2", R"(C0(f)A0({"n":1}))"},
                 {"<function=f>\n<parameter=a>\n\"x\n\ty\"\n</parameter>\n</function>", R"(C0(f)A0({"a":"x\n\u0009y"}))"},
                 {"<function=f>{\"a\": 1}</function>", R"(C0(f)A0({"a": 1}))"},
                 {"<function=f>\n<b>", "T(<function=f>\n<b>)"}});
  coder.optional_texts = {{"f", "o"}};
  expect(coder, {{"<function=f>\n<parameter=o>\n94107\n</parameter>\n</function>", R"(C0(f)A0({"o":"94107"}))"},
                 {"<function=f>\n<parameter=o>\nnull\n</parameter>\n<parameter=s>\nnull\n</parameter>\n</function>",
                  R"(C0(f)A0({"o":null,"s":"null"}))"}});
  expect(tools_of("<arg_key> <tool_call>"), {{"<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>b</"
                                              "arg_key>\n<arg_value>true</arg_value>\n</tool_call>",
                                              R"(C0(f)A0({"a":"Paris","b":true}))"},
                                             {"<tool_call>f</tool_call>", "C0(f)A0({})"}});
}

TEST(AnswerParser, Harmony) {
  const std::string_view source = "gpt-oss: <|channel|> <|message|>";
  AnswerSyntax syntax = tools_of(source);
  net::find_reasoning(syntax, FakeCodec(), source, "");
  expect(syntax,
         {{"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi <b>!<|return|>", "R(Hm.)T(Hi <b>!)"},
          {"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f "
           "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
           R"(R(Hm.)C0(f)A0({"a": 1}))"},
          {"<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>", "C0(f)A0({})"},
          {"<|channel|>commentary<|message|>So:<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>"
           "<|start|>assistant<|channel|>final<|message|>c",
           "T(So:)R(b)T(c)"},
          {"<|channel|>final<|message|>a to=functions. b", "T(a to=functions. b)"}});
}

TEST(AnswerParser, GenericJson) {
  expect(tools_of("a template without tools"),
         {{R"({"name": "f", "arguments": {"a": 1}})", R"(C0(f)A0({"a": 1}))"},
          {R"([{"name": "f", "arguments": {}}, {"name": "f", "arguments": {}}])", "C0(f)A0({})C1(f)A1({})"},
          {"```json\n{\"name\": \"f\", \"arguments\": {}}\n```", "C0(f)A0({})"},
          {"```json\n{\"city\": 1}\n```", "T(```json\n{\"city\": 1}\n```)"},
          {"```json\n{\"name\": \"f\", \"age\": 3}\n```", "T(```json\n{\"name\": \"f\", \"age\": 3}\n```)"},
          {R"({"name": "h", "name": "f", "arguments": {}})", R"(T({"name": "h", "name": "f", "arguments": {}}))"},
          {"{}", "T({})"},
          {"[]", "T([])"}});
}

TEST(AnswerParser, ReasoningThenCalls) {
  AnswerSyntax syntax = tools_of("<tool_call>");
  syntax.reasoning = {"<think>", "</think>"};
  expect(syntax, {{"<think>\n<tool_call>{\"name\":\"f\"}\n</think>\n\n<tool_call>{\"name\":\"f\"}</tool_call>",
                   "R(<tool_call>{\"name\":\"f\"})C0(f)A0({})"},
                  {"<think>a</think>\n\nSo:\n<tool_call>{\"name\":\"f\"}</tool_call>", "R(a)T(So:)C0(f)A0({})"},
                  {"<think>a</think>\n<tool_call>b", "R(a)T(<tool_call>b)"}});
}

TEST(AnswerParser, ASingleCallEndsTheAnswer) {
  AnswerSyntax syntax = tools_of("<tool_call>");
  syntax.single_call = true;
  expect(syntax, {{R"(<tool_call>{"name":"f"}</tool_call><tool_call>{"name":"g"}</tool_call>)", "C0(f)A0({})"}});
}

TEST(AnswerParser, IdsAreStableDistinctAndShortForMistral) {
  const auto ids = [](const AnswerSyntax& syntax, std::string_view text, std::uint64_t seed) {
    net::AnswerParser parser(syntax, seed);
    std::vector<Delta> deltas;
    parser.feed(text, deltas);
    std::vector<std::string> found;
    for (const Delta& delta : deltas)
      if (const auto* begin = std::get_if<net::ToolCallBegin>(&delta)) found.push_back(begin->id);
    return found;
  };
  const std::string_view hermes = R"(<tool_call>{"name":"f"}</tool_call><tool_call>{"name":"f"}</tool_call>)";
  const auto first = ids(tools_of("<tool_call>"), hermes, 1);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, ids(tools_of("<tool_call>"), hermes, 1));
  EXPECT_NE(first, ids(tools_of("<tool_call>"), hermes, 2));
  EXPECT_TRUE(first[0].starts_with("call_"));
  const auto mistral = ids(tools_of("[TOOL_CALLS]"), "[TOOL_CALLS]f[ARGS]{}", 1);
  ASSERT_EQ(mistral.size(), 1U);
  EXPECT_EQ(mistral[0].size(), 9U);
}

TEST(AnswerParser, NothingButAPossibleMarkerIsHeldBack) {
  const AnswerSyntax syntax = tools_of("<tool_call>");
  net::AnswerParser parser(syntax, 1);
  const auto fed = [&parser](std::string_view piece) {
    std::vector<Delta> deltas;
    parser.feed(piece, deltas);
    return print(deltas);
  };
  EXPECT_EQ(fed("Hello"), "T(Hello)");
  EXPECT_EQ(fed(", a <tool_"), "T(, a)");
  EXPECT_EQ(fed("x b"), "T( <tool_x b)");
  EXPECT_EQ(fed("<tool_call>{\"name\": \"f\", \"arguments\""), "");
  EXPECT_EQ(fed(": {\"a\""), R"(C0(f)A0({"a"))");
  EXPECT_EQ(fed(": \"b"), R"(A0(: "b))");
}

TEST(AnswerParser, ACallOfAFunctionThatWasNotDeclaredStaysText) {
  const std::pair<const char*, const char*> calls[] = {
      {"<tool_call>", R"(<tool_call>{"name":"h","arguments":{"a":1}}</tool_call>)"},
      {"<tool_call>", R"(<tool_call>{"arguments":{"a":1},"name":"h"}</tool_call>)"},
      {"<|python_tag|>", R"(<|python_tag|>{"name":"h","parameters":{}})"},
      {"[TOOL_CALLS] [ARGS]", "[TOOL_CALLS]h[ARGS]{}"},
      {"<function= <parameter=", "<function=h>\n<parameter=a>\n1\n</parameter>\n</function>"},
      {"<|tool_call_start|>", "<|tool_call_start|>[h(a=1)]<|tool_call_end|>"},
      {"<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>h<｜tool▁sep｜>{}<｜tool▁call▁end｜>"},
      {"unknown", "```json\n{\"name\": \"h\", \"arguments\": {}}\n```"},
  };
  for (const auto& [chat_template, text] : calls) {
    const std::string deltas = parse_cut_anywhere(tools_of(chat_template), text);
    EXPECT_TRUE(deltas.starts_with("T(")) << deltas;
    EXPECT_EQ(deltas.find("C0("), std::string::npos) << deltas;
  }
}

TEST(WholeObject, EndsWhereTheLastValueBegan) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "{}"},
      {"{\"", "{}"},
      {R"({"ke\)", "{}"},
      {R"({"key")", "{}"},
      {R"({"key": )", "{}"},
      {R"({"key": "va)", R"({"key": "va"})"},
      {R"({"a":1, "key)", R"({"a":1})"},
      {R"({"a":1, )", R"({"a":1})"},
      {R"({"a":{"b":[1,{"c)", R"({"a":{"b":[1,{}]}})"},
      {R"({"a":{"b":)", R"({"a":{}})"},
      {R"({"a":tr)", R"({"a":true})"},
      {R"({"a":1} x)", R"({"a":1})"},
      {R"({"a":"b\)", R"({"a":"b"})"},
      {R"({"a":"b\\)", R"({"a":"b\\"})"},
      {R"({"a":"b\n)", R"({"a":"b\n"})"},
      {R"({"a":"b\u12)", R"({"a":"b"})"},
      {R"({"a":"b\ud83d)", R"({"a":"b"})"},
      {R"({"a":"b\ud83d\)", R"({"a":"b"})"},
      {R"({"a":"b\ud83d\ude0)", R"({"a":"b"})"},
      {R"({"a":"b\ud83d\ude00)", R"({"a":"b\ud83d\ude00"})"},
      {R"({"a":"\ud83dc)", R"({"a":"\ud83dc"})"},
      {R"({"a":{"b\u)", R"({"a":{}})"},
  };
  for (const auto& [text, whole] : cases) EXPECT_EQ(net::whole_object(text), whole) << text;
}

}  // namespace
}  // namespace braid::test
