// Go templates as Ollama's library writes them.
#include "text/go_template/chat.h"
#include "text/go_template/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

namespace braid::text::go {
namespace {

using testing::HasSubstr;

std::string written(std::string_view source, const Value& root = Value(ValueDict())) {
  const Result<Program> program = Program::parse(source);
  if (!program) return "not parsed: " + program.error().message;
  const Result<std::string> text = program->execute(root);
  return text ? *text : "failed: " + text.error().message;
}

Value list(std::initializer_list<Value> items) { return Value(ValueList(items)); }
Value dict(std::initializer_list<std::pair<std::string, Value>> members) { return Value(ValueDict(members)); }

TEST(GoTemplate, WritesValuesAsGoDoes) {
  const Value root =
      dict({{"Text", "a<b"}, {"Whole", 3}, {"Real", 0.5}, {"Yes", true}, {"Nil", Value()}, {"Object", dict({{"a", list({1, "x<\"y"})}})}});
  EXPECT_EQ(written("{{ .Text }} {{ .Whole }} {{.Real}} {{ .Yes }}|{{ .Nil }}|{{ .Missing.Deeper }}|", root), "a<b 3 0.5 true|||");
  EXPECT_EQ(written("{{ .Object }} {{ json .Object.a }}", root), R"({"a":[1,"x\u003c\"y"]} [1,"x\u003c\"y"])");
  EXPECT_EQ(written(R"({{ "a\tb\"é" }}{{ `raw\t` }}{{ 'c' }}{{ -7 }})"),
            "a\tb\"é"
            "raw\\tc-7");
  EXPECT_EQ(written("a{{/* a comment */}}b {{- /* one that trims */ -}} c"), "abc");
}

TEST(GoTemplate, TrimsAroundActions) {
  EXPECT_EQ(written("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(written("a {{ 1 -}}\n\n{{- 2 }} b"), "a 12 b");
  EXPECT_EQ(written("a {{-1}} b"), "a -1 b") << "a number, for nothing stands between";
}

TEST(GoTemplate, ChoosesBranches) {
  constexpr std::string_view kChoice = R"({{ if eq .A "x" "y" }}first{{ else if and .B (not .C) }}second{{ else }}third{{ end }})";
  EXPECT_EQ(written(kChoice, dict({{"A", "y"}})), "first");
  EXPECT_EQ(written(kChoice, dict({{"B", list({1})}})), "second");
  EXPECT_EQ(written(kChoice, dict({{"B", 1}, {"C", "c"}})), "third");
  EXPECT_EQ(written("{{ with .A }}{{ .b }}{{ else }}none{{ end }}", dict({{"A", dict({{"b", 7}})}})), "7");
  EXPECT_EQ(written("{{ with $x := .A }}{{ $x }}{{ . }}{{ else with .B }}{{ . }}{{ end }}", dict({{"B", "b"}})), "b");
  EXPECT_EQ(written(R"({{ or .A "otherwise" }} {{ and 1 0 }} {{ or "" 0 }})"), "otherwise 0 0");
  EXPECT_EQ(written("{{ if and .A (index .A 5) }}no{{ else }}yes{{ end }}"), "yes") << "what is not needed is not looked at";
}

TEST(GoTemplate, RangesAndSetsVariables) {
  const Value root = dict({{"L", list({"a", "b", "c"})}, {"M", dict({{"z", 1}, {"k", 2}})}});
  EXPECT_EQ(written("{{ range $i, $x := .L }}{{ $i }}{{ $x }}{{ . }} {{ end }}", root), "0aa 1bb 2cc ");
  EXPECT_EQ(written("{{ range $name, $x := .M }}{{ $name }}{{ $x }}{{ end }}", root), "k2z1") << "in the order of names";
  EXPECT_EQ(written("{{ range .N }}x{{ else }}none{{ end }}", root), "none");
  EXPECT_EQ(written(R"({{ range .L }}{{ if eq . "b" }}{{ continue }}{{ end }}{{ if eq . "c" }}{{ break }}{{ end }}{{ . }}{{ end }})", root),
            "a");
  EXPECT_EQ(written("{{ $last := 0 }}{{ range $i, $_ := .L }}{{ $last = $i }}{{ end }}{{ $last }}", root), "2");
  EXPECT_EQ(written("{{ range $i, $_ := .L }}{{ if eq (len (slice $.L $i)) 1 }}last {{ $i }}{{ end }}{{ end }}", root), "last 2");
  EXPECT_EQ(written("{{ $x := .L }}{{ range $x }}{{ $x = 1 }}{{ . }}{{ end }}{{ $x }}", root), "abc1") << "what is gone through stays";
  EXPECT_EQ(written("{{ $l := slice .L 1 }}{{ index $l 1 }}{{ len (slice $l 1 2) }}{{ $l }}{{ range $l }}{{ . }}{{ end }}", root),
            R"(c1["b","c"]bc)");
  EXPECT_EQ(written("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}"), "21");
  EXPECT_EQ(written("{{ (index .L 1) }}{{ index .M \"k\" }}{{ (index .T 0).Function.Name }}",
                    dict({{"L", list({1, 2})}, {"M", dict({{"k", 3}})}, {"T", list({dict({{"function", dict({{"name", "f"}})}})})}})),
            "23f");
}

TEST(GoTemplate, CallsFunctions) {
  EXPECT_EQ(
      written(R"({{ len "abc" }}{{ len .L }} {{ slice "abcd" 1 3 }} {{ printf "%s=%v%%%q" "a" 1 "b" }})", dict({{"L", list({1, 2})}})),
      R"(32 bc a=1%"b")");
  EXPECT_EQ(written(R"({{ lt 1 2 }}{{ ge "b" "a" }}{{ ne 1 1.0 }} {{ "x" | printf "%s%s" "y" }} {{ print 1 2 "a" }})"),
            "truetruefalse yx 1 2a");
  EXPECT_EQ(written("{{ len currentDate }}{{ yesterdayDate | len }}"), "1010");
  const Value any = dict({{"P", dict({{"type", list({"integer", "null"})}})}});
  EXPECT_EQ(written("{{ toTypeScriptType .P }}", any), "number | null");
}

TEST(GoTemplate, NamesWhatIsWrongAndItsLine) {
  const auto wrong = [](std::string_view source) { return written(source); };
  EXPECT_THAT(wrong("a\n{{ if .A }}b"), HasSubstr("not parsed: the template, line 2: a block has no end"));
  EXPECT_THAT(wrong("{{ end }}"), HasSubstr("'end' without a block"));
  EXPECT_THAT(wrong("{{ .A"), HasSubstr("an action has no end"));
  EXPECT_THAT(wrong("{{ frobnicate .A }}"), HasSubstr("there is no function 'frobnicate'"));
  EXPECT_THAT(wrong("{{ break }}"), HasSubstr("'break' outside of 'range'"));
  EXPECT_THAT(wrong("{{ \"abc }}"), HasSubstr("a string has no end"));
  EXPECT_THAT(wrong("{{ $x }}"), HasSubstr("failed: the template, line 1: there is no variable '$x'"));
  EXPECT_THAT(wrong("{{ index .A 1 }}"), HasSubstr("failed: the template: 'index' wants"));
  EXPECT_THAT(wrong("{{ not 1 2 }}"), HasSubstr("'not' takes 1 arguments, not 2"));
  const Value same = dict({{"L", list({1, 2})}, {"M", dict({{"k", 1}})}});
  EXPECT_THAT(written("{{ eq 1 .L .L }}{{ eq .L .L }}", same), HasSubstr("failed: the template: 'eq' compares no lists and no objects"));
  EXPECT_THAT(written("{{ ne .M nil }}{{ ne .M .M }}", same), HasSubstr("failed: the template: 'ne' compares no lists and no objects"));
  EXPECT_THAT(wrong("{{" + std::string(5000, '(') + "}}"), HasSubstr("parentheses nest too deeply"));
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "{{ if 1 }}";
  EXPECT_THAT(wrong(blocks), HasSubstr("blocks nest too deeply"));
  std::string loops;
  for (int i = 0; i < 6; ++i) loops += "{{ range 1000 }}";
  for (int i = 0; i < 6; ++i) loops += "{{ end }}";
  EXPECT_THAT(wrong(loops), HasSubstr("it loops too often"));
  EXPECT_THAT(wrong("{{ $x := \"eight by\" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}"), HasSubstr("writes too much"));
}

// As Go's text/template has it: "define" at the top, wherever that is, "block" in its place, "$" and "." the value that is given.
TEST(GoTemplate, CallsTemplatesThatItDefines) {
  const Value root = dict({{"A", "a"}, {"L", list({1, 2})}});
  EXPECT_EQ(written(R"({{ template "x" .A }}{{ define "x" }}<{{ . }}{{ $ }}>{{ end }}!)", root), "<aa>!");
  EXPECT_EQ(written(R"({{ define "x" }}{{ if . }}yes{{ else }}no{{ end }}{{ end }}{{ template "x" }} {{ template "x" eq .A "a" }})", root),
            "no yes");
  EXPECT_EQ(written(R"({{ range .L }}{{ block "x" . }}[{{ . }}]{{ end }}{{ end }}{{ template "x" `again` }})", root), "[1][2][again]");
  EXPECT_EQ(written(R"({{ define "x" }} {{ end }}{{ define "x" }}full{{ end }}{{ define "x" }}{{ end }}{{ template "x" }})"), "full")
      << "a blank one gives way";
  EXPECT_EQ(
      written(R"({{ define "down" }}{{ len . }}{{ with slice . 1 }}{{ template "down" . }}{{ end }}{{ end }}{{ template "down" "abc" }})"),
      "321");
  EXPECT_EQ(written(R"({{ $v := 1 }}{{ define "x" }}{{ $v := . }}{{ $v }}{{ end }}{{ template "x" 2 }}{{ $v }})"), "21");
  EXPECT_EQ(written("a {{- define \"x\" -}} \n b \n {{- end }} c"), "a c");
}

TEST(GoTemplate, RefusesTemplatesThatCannotBeCalled) {
  EXPECT_THAT(written("\n{{ template \"x\" }}"), HasSubstr("not parsed: the template, line 2: there is no template 'x'"));
  EXPECT_THAT(written(R"({{ define "x" }}a{{ end }}{{ define "x" }}b{{ end }})"), HasSubstr("a second template 'x'"));
  EXPECT_THAT(written(R"({{ if 1 }}{{ define "x" }}a{{ end }}{{ end }})"), HasSubstr("'define' within a block"));
  EXPECT_THAT(written(R"({{ define "x" }}a{{ else }}b{{ end }})"), HasSubstr("'else' without a condition"));
  EXPECT_THAT(written(R"({{ define x }}a{{ end }})"), HasSubstr("the name of a template is missing"));
  EXPECT_THAT(written(R"({{ define "x" }}a)"), HasSubstr("a block has no end"));
  EXPECT_THAT(written(R"({{ range 2 }}{{ block "x" . }}{{ break }}{{ end }}{{ end }})"), HasSubstr("'break' outside of 'range'"));
  EXPECT_THAT(written(R"({{ define "x" }}{{ $v }}{{ end }}{{ $v := 1 }}{{ template "x" }})"), HasSubstr("there is no variable '$v'"));
  std::string many;
  for (int i = 0; i < 101; ++i) many += "{{ define \"" + std::to_string(i) + "\" }}{{ end }}";
  EXPECT_THAT(written(many), HasSubstr("it has too many templates"));
  EXPECT_THAT(written(R"({{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }})"), HasSubstr("call each other too deeply"));
  EXPECT_THAT(
      written(
          R"({{ define "x" }}{{ if slice . 1 }}{{ template "x" slice . 1 }}{{ template "x" slice . 1 }}{{ end }}{{ end }}{{ template "x" ")" +
          std::string(40, 'a') + "\" }}"),
      HasSubstr("it loops too often"));
}

TEST(GoTemplate, PaysForObjectsThatItLooksThrough) {
  ValueDict many;
  for (int i = 0; i < 50'000; ++i) many.emplace_back("name " + std::to_string(i), i);
  const Value root = dict({{"M", Value(std::move(many))}});
  for (const std::string_view look : {"$.M.Missing", "(index $.M `name 7`)"}) {
    const std::string once = "{{ range 10 }}{{ if " + std::string(look) + " }}{{ end }}{{ end }}";
    EXPECT_EQ(written(once, root), "");
    EXPECT_THAT(written("{{ range 1000 }}" + once + "{{ end }}", root), HasSubstr("it loops too often"));
  }
}

Value says(const char* role, const char* words) { return dict({{"role", role}, {"content", words}}); }

std::string chat(std::string_view source, Value messages, Value tools = {}, Value kwargs = {}) {
  const Result<ChatProgram> program = ChatProgram::parse(source);
  if (!program) return "not parsed: " + program.error().message;
  ChatPrompt prompt;
  prompt.messages = std::move(messages);
  prompt.tools = std::move(tools);
  prompt.kwargs = std::move(kwargs);
  const Result<std::string> text = program->render(prompt);
  return text ? *text : "failed: " + text.error().message;
}

// Older ones are written for each turn, the last of which ends where the answer begins.
TEST(GoChat, OfTurnsEndsWhereTheAnswerBegins) {
  constexpr std::string_view kTurns =
      "{{ if .System }}<s>{{ .System }}</s>{{ end }}{{ if .Prompt }}<u>{{ .Prompt }}</u>{{ end }}<a>{{ .Response }}</a>\n";
  EXPECT_EQ(chat(kTurns, list({says("user", "hi")})), "<u>hi</u><a>");
  EXPECT_EQ(chat(kTurns, list({says("system", "be kind"), says("user", "hi"), says("assistant", "hello"), says("user", "bye")})),
            "<s>be kind</s><u>hi</u><a>hello</a>\n<u>bye</u><a>");
  EXPECT_EQ(chat(kTurns, list({says("user", "one"), says("user", "two")})), "<u>one\n\ntwo</u><a>") << "neighbours are joined";
  EXPECT_EQ(chat(kTurns, list({says("user", "hi"), says("system", "now be brief"), says("user", "well?")})),
            "<u>hi</u><a></a>\n<s>now be brief</s><u>well?</u><a>");
  EXPECT_EQ(chat(kTurns, list({says("user", "go on"), says("assistant", "Once")})), "<u>go on</u><a>Once")
      << "an answer to be gone on with";
  EXPECT_EQ(chat("[{{ .System }}] {{ .Prompt }} =", list({says("user", "hi"), says("assistant", "yes"), says("user", "no")})),
            "[] hi =yes[] no =")
      << "without a place for answers these come last";
}

TEST(GoChat, OfTurnsEndsWhereTheAnswerBeginsInATemplateThatItCalls) {
  constexpr std::string_view kTurns =
      R"({{ define "said" }}<a>{{ .Response }}</a>{{ end }}{{ define "turn" }}<u>{{ .Prompt }}</u>{{ template "said" . }}|{{ end }})"
      R"({{ template "turn" . }}.)";
  EXPECT_EQ(chat(kTurns, list({says("user", "hi"), says("assistant", "hello"), says("user", "bye")})),
            "<u>hi</u><a>hello</a>|.<u>bye</u><a>");
}

TEST(GoChat, RangesWithinATemplateThatItCalls) {
  constexpr std::string_view kCalls =
      R"({{ define "one" }}[{{ .Role }}] {{ .Content }}{{ end }}{{ range .Messages }}{{ template "one" . }}{{ end }})";
  EXPECT_TRUE(is_go_template(R"({{ template "x" . }}{{ define "x" }}{{ end }})"));
  EXPECT_EQ(chat(kCalls, list({says("user", "hi"), says("assistant", "hello")})), "[user] hi[assistant] hello");
}

constexpr std::string_view kMessages = R"({{- if or .System .Tools }}<|system|>{{ .System }}
{{- if .Tools }}
Tools:{{ range .Tools }} {{ .Function.Name }}={{ .Function }}{{ end }}
{{- end }}<|end|>
{{ end }}
{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 }}
{{- if eq .Role "user" }}<|user|>{{ .Content }}<|end|>
{{ else if eq .Role "assistant" }}<|assistant|>
{{- if and $.IsThinkSet .Thinking }}<think>{{ .Thinking }}</think>{{ end }}
{{- if .Content }}{{ .Content }}
{{- else if .ToolCalls }}{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}
{{- end }}{{ if not $last }}<|end|>
{{ end }}
{{- else if eq .Role "tool" }}<|tool|>{{ .ToolName }}: {{ .Content }}<|end|>
{{ end }}
{{- if and (ne .Role "assistant") $last }}<|assistant|>{{ end }}
{{- end }})";

TEST(GoChat, OfMessagesHasToolsCallsAndTheirAnswers) {
  const Value tools =
      list({dict({{"type", "function"}, {"function", dict({{"name", "add"}, {"parameters", dict({{"type", "object"}})}})}})});
  const Value call = dict({{"role", "assistant"},
                           {"content", ""},
                           {"tool_calls", list({dict({{"function", dict({{"name", "add"}, {"arguments", dict({{"a", 1}})}})}})})}});
  const Value answer = dict({{"role", "tool"}, {"name", "add"}, {"content", "3"}});
  EXPECT_EQ(chat(kMessages, list({says("system", "Count."), says("user", "1+2?"), call, answer}), tools),
            "<|system|>Count.\nTools: add={\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}<|end|>\n<|user|>1+2?<|end|>\n"
            "<|assistant|>{\"name\": \"add\", \"arguments\": {\"a\":1}}<|end|>\n<|tool|>add: 3<|end|>\n<|assistant|>");
  EXPECT_EQ(chat(kMessages, list({says("user", "hi")})), "<|user|>hi<|end|>\n<|assistant|>");
  EXPECT_EQ(chat(kMessages, list({says("user", "hi"), says("assistant", "Hel")})), "<|user|>hi<|end|>\n<|assistant|>Hel");
}

TEST(GoChat, IsWrittenWhateverFurtherVariablesAreCalled) {
  const Value others = dict({{"Messages", list({dict({{"Role", "user"}, {"Content", "other"}})})},
                             {"Tools", list({1})},
                             {"System", "other"},
                             {"Prompt", "other"},
                             {"Response", "other"},
                             {"Mood", "calm"}});
  EXPECT_EQ(chat(kMessages, list({says("user", "hi")}), {}, others), "<|user|>hi<|end|>\n<|assistant|>");
  EXPECT_EQ(chat("[{{ .System }}] {{ .Mood }} {{ .Prompt }}{{ .Tools }} = {{ .Response }}", list({says("user", "hi")}), {}, others),
            "[] calm hi = ");
}

TEST(GoChat, KnowsWhetherThoughtsAreWanted) {
  const Value thought = dict({{"role", "assistant"}, {"reasoning_content", "hm"}, {"content", "yes"}});
  const Value messages = list({says("user", "well?"), thought, says("user", "sure?")});
  EXPECT_THAT(chat(kMessages, messages, {}, dict({{"enable_thinking", true}})), HasSubstr("<|assistant|><think>hm</think>yes<|end|>"));
  EXPECT_THAT(chat(kMessages, messages), HasSubstr("<|assistant|>yes<|end|>"));
  EXPECT_EQ(chat("{{ .Think }} {{ .ThinkLevel }} {{ .Prompt }}", list({says("user", "x")}), {}, dict({{"reasoning_effort", "low"}})),
            "true low x");
}

TEST(GoChat, TakesWordsOfContentInParts) {
  const Value parts = list({dict({{"type", "text"}, {"text", "one "}}), dict({{"type", "text"}, {"text", "two"}})});
  EXPECT_EQ(chat("{{ .Prompt }}:", list({dict({{"role", "user"}, {"content", parts}})})), "one two:");
}

TEST(GoChat, IsToldFromJinja) {
  EXPECT_TRUE(is_go_template("{{ .Prompt }}"));
  EXPECT_TRUE(is_go_template("a {{- if .System }}b{{ end }}"));
  EXPECT_TRUE(is_go_template("{{- /* all */ -}} {{ $x := 1 }}"));
  EXPECT_FALSE(is_go_template("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_FALSE(is_go_template("{{ messages[0].content }}"));
  EXPECT_FALSE(is_go_template("{{ bos_token }}{# a comment #}"));
  EXPECT_FALSE(is_go_template("nothing but words"));
  EXPECT_FALSE(is_go_template("{{"));
}

}  // namespace
}  // namespace braid::text::go
