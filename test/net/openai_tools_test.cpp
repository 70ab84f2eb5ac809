// Tools: what is taken, which path an error names, and the constraint that forces calls.
#include "net/fake_chat.h"
#include "net/generation/choice_text.h"
#include "net/generation/forced_calls.h"
#include "net/generation/prompts.h"
#include "net/generation/strict_calls.h"
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"integer"}}}}},)"
    R"({"type":"function","function":{"name":"g","description":"G.","strict":true}}])";

std::string with_tools(std::string_view fields) { return std::string(kTools) + "," + std::string(fields); }

// "auto f g", "required f", with "single" where only one call is allowed; "none", or the path of the error behind "!".
std::string tools_of(const std::string& fields) {
  const auto call = chat_with(fields);
  if (!call) return "!" + call.error().param;
  if (!call->tools) return std::get<ChatPrompt>(call->prompt).tools.is_null() ? "none" : "none, but shown";
  std::string text = call->tools->required ? "required" : "auto";
  for (const net::ToolFunction& function : call->tools->functions) text += " " + function.name;
  return text + (call->tools->parallel ? "" : " single");
}

TEST(OpenAiTools, ChoicesNameFunctions) {
  const std::pair<std::string, const char*> cases[] = {
      {std::string(kTools), "auto f g"},
      {R"("tools":[])", "none"},
      {with_tools(R"("tool_choice":"auto")"), "auto f g"},
      {with_tools(R"("tool_choice":"none")"), "none"},
      {with_tools(R"("tool_choice":"required")"), "required f g"},
      {with_tools(R"("tool_choice":{"type":"function","function":{"name":"g"}})"), "required g"},
      {with_tools(R"("tool_choice":{"type":"function","function":{"name":"h"}})"), "!tool_choice"},
      {with_tools(R"("tool_choice":{"type":"function"})"), "!tool_choice.function"},
      {with_tools(R"("tool_choice":{"type":"custom","function":{"name":"f"}})"), "!tool_choice.custom"},
      {with_tools(R"("tool_choice":"any")"), "!tool_choice"},
      {with_tools(R"("tool_choice":3)"), "!tool_choice"},
      {with_tools(
           R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}})"),
       "auto f"},
      {with_tools(R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})"),
       "!tool_choice.allowed_tools.tools"},
      {with_tools(R"("parallel_tool_calls":false)"), "auto f g single"},
      {with_tools(R"("parallel_tool_calls":1)"), "!parallel_tool_calls"},
      {with_tools(R"("tool_choice":"required","response_format":{"type":"json_object"})"), "required f g"},
      {R"("tool_choice":"required")", "!tool_choice"},
      {R"("tool_choice":"auto")", "none"},
      {R"("tools":{})", "!tools"},
      {R"("tools":[1])", "!tools[0]"},
      {R"("tools":[{"type":"function"}])", "!tools[0].function"},
      {R"("tools":[{"function":{"name":"f"}}])", "!tools[0].type"},
      {R"("tools":[{"type":"web_search","function":{"name":"f"}}])", "none"},
      {R"("tools":[{"type":"web_search"},{"type":"custom","custom":{"name":"c"}}])", "auto c"},
      {R"("tools":[{"type":"custom","custom":{"name":"f"}}])", "auto f"},
      {R"("tools":[{"type":"custom"}])", "!tools[0].custom"},
      {R"("tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"x","definition":"y"}}}}])",
       "auto f"},
      {R"("tools":[{"type":"web_search"}],"tool_choice":"required")", "!tool_choice"},
      {with_tools(R"("tool_choice":{"type":"web_search"})"), "!tool_choice.type"},
      {with_tools(R"("tool_choice":{"type":"custom","custom":{"name":"f"}})"), "required f"},
      {R"("tools":[{"type":"function","function":{}}])", "!tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "!tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])", "!tools[0].function.parameters"},
      {R"("tools":[{"type":"function","function":{"name":"f","strict":1}}])", "!tools[0].function.strict"},
      {R"("tools":[{"type":"function","function":{"name":"f","description":1}}])", "!tools[0].function.description"},
      {R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])", "!tools[1]"},
      {R"("functions":[{"name":"f"}])", "!functions"},
      {R"("function_call":{"name":"f"})", "!function_call"},
      {R"("functions":[],"function_call":"auto")", "none"},
  };
  for (const auto& [fields, expected] : cases) EXPECT_EQ(tools_of(fields), expected) << fields;
}

TEST(OpenAiTools, AnyNumberWithNamesOf128Characters) {
  const auto named = [](std::size_t length, int i) { return std::string(length - std::to_string(i).size(), 'n') + std::to_string(i); };
  std::string tools;
  for (int i = 0; i < 300; ++i)
    tools += (i > 0 ? "," : "") + (i % 2 == 0 ? R"({"type":"function","function":{"name":")" + named(128, i) + "\"}}"
                                              : R"({"type":"custom","custom":{"name":")" + named(128, i) + "\"}}");
  const auto call = chat_with(R"("tools":[)" + tools + "]");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->tools->functions.size(), 300U);
  EXPECT_EQ(call->tools->functions.back().name, named(128, 299));
  EXPECT_EQ(tools_of(R"("tools":[{"type":"function","function":{"name":")" + named(129, 0) + "\"}}]"), "!tools[0].function.name");
  EXPECT_EQ(tools_of(R"("tools":[{"type":"custom","custom":{"name":")" + named(129, 0) + "\"}}]"), "!tools[0].custom.name");
}

TEST(OpenAiTools, CannotBeForcedWithoutACompiler) {
  ServedModel model = kFakeModel;
  model.constraints = nullptr;
  EXPECT_EQ(chat_with(with_tools(R"("tool_choice":"required")"), model).error().param, "tool_choice");
  EXPECT_TRUE(chat_with(std::string(kTools), model));
}

// A constraint in a notation like that of grammars.
std::string print(const ConstraintSpec& spec);

struct Print {
  std::string operator()(const ConstraintSpec::JsonObject&) const { return "OBJECT"; }
  std::string operator()(const ConstraintSpec::JsonSchema& schema) const { return schema.object ? "SCHEMA" : "SCHEMA OF ANYTHING"; }
  std::string operator()(const ConstraintSpec::Literal& literal) const { return "'" + literal.text + "'"; }
  std::string operator()(const ConstraintSpec::FreeUntil& free) const { return "...'" + free.end + "'"; }
  std::string operator()(const ConstraintSpec::FreeWithout& free) const { return "[^'" + free.end + "']"; }
  std::string operator()(const ConstraintSpec::Sequence& sequence) const { return "(" + joined(sequence.parts, " ") + ")"; }
  std::string operator()(const ConstraintSpec::Alternatives& all) const { return "(" + joined(all.options, " | ") + ")"; }
  std::string operator()(const ConstraintSpec::Repeat& repeat) const {
    return print(repeat.item.front()) + "{" + std::to_string(repeat.least) + "," + std::to_string(repeat.most) + "}";
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "OTHER";
  }

  static std::string joined(const std::vector<ConstraintSpec>& specs, const char* separator) {
    std::string text;
    for (const ConstraintSpec& spec : specs) text += (text.empty() ? "" : separator) + print(spec);
    return text;
  }
};

std::string print(const ConstraintSpec& spec) { return std::visit(Print{}, spec.kind); }

std::string forced(std::string_view chat_template, bool parallel, const net::ReasoningTags& reasoning = {}, bool begun = false) {
  net::AnswerSyntax syntax;
  syntax.calls = &net::call_syntax_of(chat_template);
  syntax.reasoning = reasoning;
  syntax.begins_in_reasoning = begun;
  net::ToolRules rules{{{"f", ValueDict{{"required", ValueList{}}}, false, "p"}, {"g", {}, false, "p"}}, true, parallel};
  return print(net::forced_calls(rules, syntax));
}

net::AnswerSyntax syntax_of(std::string_view chat_template, const net::ReasoningTags& reasoning, bool begun) {
  net::AnswerSyntax syntax;
  syntax.calls = &net::call_syntax_of(chat_template);
  syntax.reasoning = reasoning;
  syntax.begins_in_reasoning = begun;
  return syntax;
}

std::string strict(std::string_view chat_template, bool is_strict = true, const net::ReasoningTags& reasoning = {}, bool begun = false) {
  const net::ToolRules rules{{{"f", ValueDict{{"required", ValueList{}}}, is_strict, "p"}}, false, true};
  const auto spec = net::strict_calls(rules, syntax_of(chat_template, reasoning, begun));
  return spec ? print(*spec) : "none";
}

TEST(StrictCalls, BeginAtTheModelsOwnMarkerInFreeText) {
  EXPECT_EQ(strict("<tool_call>", false), "none");
  const std::string spoken =
      "((...'<tool_call>' (('\n{\"name\": \"f\", \"arguments\": ' SCHEMA '}\n</tool_call>'))){0,-1} [^'<tool_call>'])";
  EXPECT_EQ(strict("<tool_call>"), spoken);
  const std::string harmony = strict("<|channel|> <|message|>");  // of its two markers one ends with the other
  EXPECT_TRUE(harmony.starts_with("((...'to=functions.' (('f' OTHER ('<|constrain|>json<|message|>' | 'json<|message|>' |")) << harmony;
  EXPECT_TRUE(harmony.ends_with(" SCHEMA '<|call|>'))){0,-1} [^'to=functions.'])")) << harmony;
  EXPECT_EQ(strict("[TOOL_CALLS] [ARGS]"), "((...'[TOOL_CALLS]' (('f[ARGS]' SCHEMA))){0,-1} [^'[TOOL_CALLS]'])");
  EXPECT_EQ(strict("<tool_call>", true, {"<think>", "</think>"}, true), "(((...'</think>'){1,1} " + spoken + ") | ([^'</think>']))");
  EXPECT_EQ(strict("<tool_call>", true, {"<think>", "</think>"}),
            "((('<think>' ...'</think>'){0,1} " + spoken + ") | ('<think>' [^'</think>']))");
}

TEST(StrictCalls, StandBesideAnAnswersSchema) {
  const net::ToolRules rules{{{"f", {}, false, "p"}}, false, false};
  const ConstraintSpec text{ConstraintSpec::JsonObject{}, "response_format"};
  EXPECT_EQ(print(net::calls_or(rules, syntax_of("<tool_call>", {}, false), text)),
            "((((('<tool_call>\n{\"name\": \"f\", \"arguments\": ' OBJECT '}\n</tool_call>'))) | OBJECT))");
}

// What max_tokens cuts off before the function is known is a call's markup.
TEST(ForcedCalls, ThatAreCutOffGiveNoText) {
  const FakeCodec codec;
  for (const bool required : {true, false}) {
    net::GenerationCall call;
    call.tools = net::ToolRules{{{"f", {}, false, "p"}}, required, true};
    call.syntax = syntax_of("<tool_call>", {}, false);
    call.syntax->functions = {"f"};
    net::ChoiceText text(codec, call, 1);
    for (const char c : std::string_view("<tool_call>\n{\"na")) text.add({c, 0.0F});
    EXPECT_EQ(text.finish(FinishReason::kLength).reason, net::EndReason::kLength);
    std::string said;
    for (const net::Delta& delta : text.pending().deltas)
      if (const auto* piece = std::get_if<net::TextDelta>(&delta)) said += piece->text;
    EXPECT_EQ(said, "");
  }
}

TEST(ForcedCalls, AreInTheModelsOwnSyntax) {
  EXPECT_EQ(forced("<tool_call>", false),
            "((('<tool_call>\n{\"name\": \"f\", \"arguments\": ' SCHEMA '}\n</tool_call>') | "
            "('<tool_call>\n{\"name\": \"g\", \"arguments\": ' OBJECT '}\n</tool_call>')))");
  EXPECT_EQ(forced("<|python_tag|>", false),
            R"(((('{"name": "f", "parameters": ' SCHEMA '}') | ('{"name": "g", "parameters": ' OBJECT '}'))))");
  EXPECT_EQ(forced("[TOOL_CALLS] [ARGS]", true),
            "((('[TOOL_CALLS]f[ARGS]' SCHEMA) | ('[TOOL_CALLS]g[ARGS]' OBJECT)) "
            "((('[TOOL_CALLS]f[ARGS]' SCHEMA) | ('[TOOL_CALLS]g[ARGS]' OBJECT))){0,31})");
  EXPECT_EQ(forced("<TOOLCALL>", false),
            R"(('<TOOLCALL>[' (('{"name": "f", "arguments": ' SCHEMA '}') | ('{"name": "g", "arguments": ' OBJECT '}')) ']</TOOLCALL>'))");
}

TEST(ForcedCalls, LetAReasoningModelThink) {
  EXPECT_TRUE(forced("<tool_call>", false, {"<think>", "</think>"}).starts_with("(('<think>' ...'</think>' '\n\n'){0,1} "));
  EXPECT_TRUE(forced("<tool_call>", false, {"<think>", "</think>"}, true).starts_with("(...'</think>' '\n\n' ("));
}

// The fake model with another codec, for as long as that lives.
ServedModel with_codec(const TextCodec& codec) {
  ServedModel model = kFakeModel;
  model.codec = &codec;
  return model;
}

std::string rendered(const std::string& messages, const std::string& fields) {
  FakeCodec codec;
  codec.chat_template = "knows nothing";
  std::string body = R"({"messages":)" + messages + (fields.empty() ? "" : "," + fields) + "}";
  auto call = read_text(net::openai::read_chat, body, kFakeModel);
  const auto prompts = net::encode_prompts(with_codec(codec), *call);
  std::string text;
  for (const TokenId id : prompts->front()) text += static_cast<char>(id);
  return text;
}

// Like DeepSeek's: takes the arguments of calls as text only.
class JoiningCodec final : public FakeCodec {
 public:
  Result<RenderedChat> render(const ChatPrompt& prompt) const override {
    const Value& calls = *prompt.messages.get_if<ValueList>()->front().find("tool_calls");
    const Value* text = calls.get_if<ValueList>()->front().find("function")->find("arguments");
    if (text->get_if<std::string>() == nullptr) return invalid_argument("cannot join a dict to text in line 1");
    return RenderedChat{*text->get_if<std::string>(), {}};
  }
};

TEST(ToolTexts, TellStringsFromOtherArguments) {
  auto call = chat_with(R"("tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{
      "s":{"type":"string"},"n":{"type":"integer"},"o":{"anyOf":[{"type":"string"},{"type":"null"}]},"p":{"type":["string","null"]},
      "q":{"anyOf":[{"type":"string"},{"type":"integer"}]},"r":{}}}}}])");
  ASSERT_TRUE(call);
  ASSERT_TRUE(net::encode_prompts(kFakeModel, *call));
  using Names = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(call->syntax->texts, (Names{{"f", "s"}}));
  EXPECT_EQ(call->syntax->optional_texts, (Names{{"f", "o"}, {"f", "p"}}));
}

TEST(ToolTexts, GiveArgumentsAsTextToATemplateThatJoinsThem) {
  std::string body = R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":[1,null]}"}}]}]})";
  auto call = read_text(net::openai::read_chat, body, kFakeModel);
  const auto prompts = net::encode_prompts(with_codec(JoiningCodec()), *call);
  ASSERT_TRUE(prompts);
  EXPECT_EQ(std::string(prompts->front().begin(), prompts->front().end()), R"({"a":[1,null]})");
}

TEST(ToolTexts, TellAModelWhoseTemplateKnowsNoTools) {
  const std::string text = rendered(R"([{"role":"user","content":"a"}])", R"("tools":[{"type":"function","function":{"name":"f"}}])");
  EXPECT_TRUE(text.starts_with("system:You may call these functions:\n{\"name\":\"f\"}\n")) << text;
  EXPECT_TRUE(text.ends_with("user:a;assistant:")) << text;
  EXPECT_TRUE(rendered(R"([{"role":"system","content":"S"},{"role":"user","content":"a"}])",
                       R"("tools":[{"type":"function","function":{"name":"f"}}])")
                  .starts_with("system:S\n\nYou may"));
  EXPECT_EQ(
      rendered(
          R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
          R"({"role":"tool","tool_call_id":"1","content":"42"}])",
          ""),
      "assistant:{\"name\":\"f\",\"arguments\":{\"a\":1}};user:Result of the call: 42;assistant:");
}

// Also like DeepSeek's: knows a message of calls by its content, which is none.
class CallsWithoutContentCodec final : public FakeCodec {
 public:
  explicit CallsWithoutContentCodec(bool joins_content) : joins_content_(joins_content) {
    chat_template = "{{ tools }} message['role'] == 'assistant' and message['content'] is none";
  }
  Result<RenderedChat> render(const ChatPrompt& prompt) const override {
    const Value& content = *prompt.messages.get_if<ValueList>()->front().find("content");
    if (content.is_null() && joins_content_) return invalid_argument("cannot join none to text in line 1");
    return RenderedChat{content.is_null() ? "calls" : "says '" + *content.get_if<std::string>() + "'", {}};
  }

 private:
  bool joins_content_;
};

TEST(ToolTexts, GiveNoneAsContentToATemplateThatAsksForIt) {
  const auto rendered_by = [](const TextCodec& codec, const std::string& content) {
    std::string body = R"({"messages":[{"role":"assistant","content":)" + content + R"(,"tool_calls":[{"function":{"name":"f"}}]}]})";
    auto call = read_text(net::openai::read_chat, body, kFakeModel);
    const auto prompts = net::encode_prompts(with_codec(codec), *call);
    return prompts ? std::string(prompts->front().begin(), prompts->front().end()) : prompts.error().message;
  };
  EXPECT_EQ(rendered_by(CallsWithoutContentCodec(false), "null"), "calls");
  EXPECT_EQ(rendered_by(CallsWithoutContentCodec(false), R"("")"), "calls");
  EXPECT_EQ(rendered_by(CallsWithoutContentCodec(false), R"("so")"), "says 'so'");
  EXPECT_EQ(rendered_by(CallsWithoutContentCodec(true), "null"), "says ''");
}

class HermesCodec final : public FakeCodec {
 public:
  HermesCodec() { chat_template = "tools <tool_call>"; }
};

// A chat whose model calls the custom tool "patch", and of whose tools one is a provider's.
struct CustomChat {
  CustomChat() {
    server.on_loop([this] {
      server.model().codec = &codec;
      server.model().constraints = &compiler;
      server.engine().script = [](const GenerationRequest&) {
        return events_of("<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"a\\n\\\"b\\\"\"}}\n</tool_call>");
      };
    });
  }
  Reply ask(const std::string& members) {
    return server.ask(post("/v1/chat/completions",
                           R"({"tools":[{"type":"web_search"},{"type":"custom","custom":{"name":"patch","format":{"type":"grammar",)"
                           R"("grammar":{"syntax":"regex","definition":"[a-z]+"}}}}],"messages":[{"role":"user","content":"x"})" +
                               members + "}"));
  }

  HermesCodec codec;
  FakeCompiler compiler;
  TestServer server;
};

TEST(OpenAiTools, CustomToolsAreCalledWithAText) {
  CustomChat chat;
  const Reply whole = chat.ask("]");
  EXPECT_NE(whole.body.find(R"("type":"custom","custom":{"name":"patch","input":"a\n\"b\""}})"), std::string::npos) << whole.body;
  EXPECT_EQ(whole.headers.at("x-braid-tools-ignored"), "web_search");
  const std::string stream = chat.ask(R"(],"stream":true)").body;
  EXPECT_NE(stream.find(R"("type":"custom","custom":{"name":"patch","input":""}}]})"), std::string::npos) << stream;
  std::string input;
  constexpr std::string_view kPiece = R"({"tool_calls":[{"index":0,"custom":{"input":")";
  for (std::size_t at = stream.find(kPiece); at != std::string::npos; at = stream.find(kPiece, at + 1)) {
    const std::size_t begin = at + kPiece.size();
    input += stream.substr(begin, stream.find(R"("}}]})", begin) - begin);
  }
  EXPECT_EQ(input, R"(a\n\"b\")");
  EXPECT_EQ(stream.find("arguments"), std::string::npos);
}

TEST(OpenAiTools, ASearchThatIsAFieldOfItsOwnIsLeftOutAndNamed) {
  TestServer server;
  const auto ask = [&](const char* path, const char* start) {
    return server.ask(post(path, std::string(start) + R"(,"web_search_options":{"search_context_size":"low"}})"));
  };
  const Reply chat = ask("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}])");
  EXPECT_EQ(chat.status, 200) << chat.body;
  EXPECT_EQ(chat.headers.at("x-braid-tools-ignored"), "web_search_options");
  EXPECT_EQ(ask("/v1/completions", R"({"prompt":"x")").status, 400) << "there are no tools";
}

TEST(OpenAiTools, ACustomCallOfTheHistoryIsTheFunctionsThatStandsForIt) {
  const auto call = chat_with(R"("messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c1","type":"custom",)"
                              R"("custom":{"name":"patch","input":"x"}}]},{"role":"tool","tool_call_id":"c1","content":"done"}])");
  ASSERT_TRUE(call) << call.error().message;
  const auto& messages = *std::get<ChatPrompt>(call->prompt).messages.get_if<ValueList>();
  const Value& told = (*messages[1].find("tool_calls")->get_if<ValueList>())[0];
  EXPECT_EQ(*told.find("type"), Value("function"));
  EXPECT_EQ(*told.find("function")->find("arguments"), Value(ValueDict{{"input", "x"}}));
}

// The grammar of a custom tool is part of the constraint, and where that cannot be, the answer says so.
TEST(OpenAiTools, AFormOfAnotherTypeIsLeftOutAndNamed) {
  TestServer server;
  const auto ignored = [&](const char* path, const std::string& body) {
    const Reply reply = server.ask(post(path, body));
    const auto header = reply.headers.find("x-braid-schema-ignored");
    return std::to_string(reply.status) + " " + (header != reply.headers.end() ? header->second : "none");
  };
  const std::pair<std::string, bool> formats[] = {{R"({"type":"regex","pattern":"a"})", true},
                                                  {R"("text")", true},
                                                  {"{}", true},
                                                  {R"({"type":"grammar","syntax":"ebnf","definition":"a ::= b"})", true},
                                                  {R"({"type":"text"})", false},
                                                  {"null", false}};
  for (const auto& [format, is_unknown] : formats) {
    EXPECT_EQ(ignored("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"custom","custom":{)"
                                              R"("name":"f","format":)" +
                                                  format + "}}]}"),
              is_unknown ? "200 tools[0].custom.format" : "200 none");
    EXPECT_EQ(ignored("/v1/responses", R"({"input":"x","tools":[{"type":"custom","name":"f","format":)" + format + "}]}"),
              is_unknown ? "200 tools[0].format" : "200 none");
  }
}

TEST(OpenAiTools, TheAnswerTellsOnceWhatItsConstraintLeftOut) {
  class Lossy final : public FakeConstraint {
   public:
    using FakeConstraint::FakeConstraint;
    std::span<const std::string> left_out() const override { return paths_; }

   private:
    std::vector<std::string> paths_ = {"tools[1].custom.format", "tools[0].function.parameters.not", "tools[1].custom.format"};
  };
  class LossyCompiler final : public ConstraintCompiler {
   public:
    Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec) const override {
      return std::shared_ptr<const Constraint>(std::make_shared<Lossy>(spec));
    }
    Result<std::shared_ptr<const TextSearch>> search(const std::string&, const std::string& path) const override {
      return invalid_argument("none", path);
    }
  };
  CustomChat chat;
  EXPECT_FALSE(chat.ask("]").headers.contains("x-braid-schema-ignored"));
  const LossyCompiler lossy;
  chat.server.on_loop([&] { chat.server.model().constraints = &lossy; });
  for (const char* choice : {"]", R"(],"tool_choice":"required")"})
    EXPECT_EQ(chat.ask(choice).headers.at("x-braid-schema-ignored"), "tools[1].custom.format, tools[0].function.parameters.not");
}

}  // namespace
}  // namespace braid::test
