// Ollama's API: lines of JSON through the one generation path.
#include "net/fake_chat.h"
#include "net/ollama/request.h"
#include "net/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <variant>

namespace braid::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Times are replaced by fixed ones.
std::string timeless(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"), "TIME");
  return std::regex_replace(text, std::regex(R"((total|prompt_eval|eval)_duration":\d+)"), "$1_duration\":0");
}

constexpr char kEnd[] = R"("done":true,"done_reason":"stop","total_duration":0,"load_duration":0,"prompt_eval_count":17,)"
                        R"("prompt_eval_duration":0,"eval_count":2,"eval_duration":0})";

TEST(Ollama, AChatIsStreamedAsLinesUnlessItSaysOtherwise) {
  TestServer server;
  const Reply reply = server.ask(post("/api/chat", R"({"model":"fake-model","messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/x-ndjson");
  const std::string head = R"({"model":"fake-model","created_at":"TIME","message":{"role":"assistant","content":)";
  EXPECT_EQ(timeless(reply.body), head + "\"H\"},\"done\":false}\n" + head + "\"i\"},\"done\":false}\n" + head + "\"\"}," + kEnd + "\n");
}

TEST(Ollama, AWholeChatIsTheLastLineWithAllOfIt) {
  TestServer server;
  const Reply reply = server.ask(post("/api/chat", R"({"stream":false,"messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(timeless(reply.body),
            R"({"model":"fake-model","created_at":"TIME","message":{"role":"assistant","content":"Hi"},)" + std::string(kEnd));
}

TEST(Ollama, APromptIsAChatUnlessItIsRaw) {
  TestServer server;
  const Reply chat = server.ask(post("/api/generate", R"({"system":"S","prompt":"a","stream":false})"));
  EXPECT_THAT(chat.body, HasSubstr(R"("response":"Hi","done":true,"done_reason":"stop")"));
  const Reply raw = server.ask(post("/api/generate", R"({"prompt":"a","raw":true,"options":{"num_predict":1}})"));
  EXPECT_THAT(raw.body, HasSubstr(R"("response":"H","done":false})"));
  server.on_loop([&] {
    std::string text;
    for (const TokenId id : server.engine().submitted.at(0).prompt) text += static_cast<char>(id);
    EXPECT_EQ(text, "system:S;user:a;assistant:");
    EXPECT_EQ(server.engine().submitted.at(1).prompt, (std::vector<TokenId>{kBos, 'a'}));
    EXPECT_EQ(server.engine().submitted.at(1).stop.max_tokens, 1);
  });
}

TEST(Ollama, APromptGoesOnFromTheContextOfAnAnswer) {
  TestServer server;
  const Reply first = server.ask(post("/api/generate", R"({"prompt":"a"})"));
  const std::size_t at = first.body.find(R"("context":)");
  ASSERT_NE(at, std::string::npos) << first.body;
  const std::string context = first.body.substr(at, first.body.find(']', at) + 1 - at);
  const Reply second = server.ask(post("/api/generate", R"({"prompt":"b","stream":false,)" + context + "}"));
  EXPECT_EQ(second.status, 200) << second.body;
  server.on_loop([&] {
    std::string text;
    for (const TokenId id : server.engine().submitted.at(1).prompt) text += static_cast<char>(id);
    EXPECT_EQ(text, "user:a;assistant:Hiuser:b;assistant:");
  });
  EXPECT_THAT(server.ask(post("/api/generate", R"({"prompt":"a","raw":true})")).body, Not(HasSubstr("context")));
  EXPECT_THAT(server.ask(post("/api/chat", R"({"messages":[{"role":"user","content":"a"}]})")).body, Not(HasSubstr("context")));
}

TEST(Ollama, APromptMayHaveATemplateOfItsOwn) {
  const auto call = read_text(net::ollama::read_generate, R"({"prompt":"a","template":"[{{ .Prompt }}]"})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(std::get<ChatPrompt>(call->prompt).template_text, "[{{ .Prompt }}]");
}

TEST(Ollama, ACallIsOneLineWithItsArguments) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      return events_of(R"(<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>)");
    };
  });
  const Reply reply = server.ask(post("/api/chat", R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function",)"
                                                   R"("function":{"name":"f","parameters":{"type":"object"}}}]})"));
  EXPECT_THAT(reply.body, HasSubstr(R"("content":"","tool_calls":[{"id":")"));
  EXPECT_THAT(reply.body, HasSubstr(R"("function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":false})"));
}

TEST(Ollama, LeavesToolsOutThatOnlyAProviderRuns) {
  TestServer server;
  const std::string body = R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"web_search"},{"type":"function",)"
                           R"("function":{"name":"f"}},{"type":"code_interpreter","container":{}}]})";
  const Reply reply = server.ask(post("/api/chat", body));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "code_interpreter, web_search");
}

TEST(Ollama, SaysWhyAnAnswerEndedAndWhatWentWrong) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("a", FinishReason::kLength); }; });
  EXPECT_THAT(server.ask(post("/api/generate", R"({"prompt":"a"})")).body, HasSubstr(R"("done_reason":"length")"));
  const Reply unknown = server.ask(post("/api/chat", R"({"model":"none","messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, R"({"error":"the model 'none' does not exist; this server has 'fake-model'"})");
  EXPECT_EQ(server.ask(post("/api/show", R"({"model":"none"})")).status, 404);
}

TEST(Ollama, SamplesAsOllamaDoesWhereTheOptionsAreSilent) {
  const auto silent = read_text(net::ollama::read_generate, R"({"prompt":"a"})");
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->sampling.temperature, 0.8F);
  EXPECT_EQ(silent->sampling.top_k, 40);
  EXPECT_EQ(silent->sampling.top_p, 0.9F);
  EXPECT_FALSE(silent->seeded);
  EXPECT_FALSE(silent->max_tokens);
  const auto said = read_text(net::ollama::read_generate,
                              R"({"prompt":"a","stream":false,"keep_alive":"5m","options":{"temperature":0,"seed":7,"num_predict":3,)"
                              R"("stop":["x"],"num_ctx":4096,"repeat_penalty":1.0}})");
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->sampling.temperature, 0.0F);
  EXPECT_EQ(said->sampling.seed, 7U);
  EXPECT_EQ(said->max_tokens, 3);
  EXPECT_EQ(said->stop_strings, std::vector<std::string>{"x"});
  EXPECT_FALSE(said->stream);
  const auto endless = read_text(net::ollama::read_generate, R"({"prompt":"a","options":{"num_predict":-1,"seed":-1}})");
  EXPECT_FALSE(endless->max_tokens);
  EXPECT_FALSE(endless->seeded);
}

TEST(Ollama, MessagesHaveItsNames) {
  const auto call =
      read_text(net::ollama::read_chat, R"({"think":false,"messages":[{"role":"user","content":"a","images":[]},)"
                                        R"({"role":"assistant","content":"","thinking":"t","tool_calls":[{"function":{)"
                                        R"("name":"f","arguments":{"x":1}}}]},{"role":"tool","content":"r","tool_name":"f"}]})");
  ASSERT_TRUE(call) << call.error().message;
  const auto& chat = std::get<ChatPrompt>(call->prompt);
  const auto& messages = *chat.messages.get_if<ValueList>();
  EXPECT_EQ(messages[0], Value(ValueDict{{"role", "user"}, {"content", "a"}}));
  EXPECT_EQ(*messages[1].find("reasoning_content"), Value("t"));
  EXPECT_EQ(*messages[2].find("name"), Value("f"));
  EXPECT_EQ(*chat.kwargs.find("enable_thinking"), Value(false));
}

TEST(Ollama, NamesTheFieldThatIsWrong) {
  const std::string messages = R"({"messages":[{"role":"user","content":"a"}],)";
  const std::pair<std::string, const char*> faults[] = {
      {"{}", "messages"},
      {R"({"messages":7})", "messages"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":"a","images":["x"]}]})", "messages[0].images[0]"},
      {messages + R"("options":{"temperature":-1}})", "options.temperature"},
      {messages + R"("options":{"stop":[5]}})", "options.stop[0]"},
      {messages + R"("options":7})", "options"},
      {messages + R"("format":"xml"})", "format"},
      {messages + R"("think":"much"})", "think"},
      {messages + R"("keep_alive":{}})", "keep_alive"},
      {messages + R"("keep_alive":"soon"})", "keep_alive"},
      {messages + R"("tools":[{"type":"function"}]})", "tools[0].function"},
      {messages + R"("tools":[{"function":{"name":"f","parameters":1}}]})", "tools[0].function.parameters"},
  };
  for (const auto& [body, param] : faults) {
    const auto call = read_text(net::ollama::read_chat, body);
    ASSERT_FALSE(call) << body;
    EXPECT_EQ(call.error().param, param) << body;
  }
  for (const char* refused :
       {R"({"prompt":"a","context":[-1]})", R"({"prompt":"a","context":"x"})", R"({"prompt":"a","context":[1],"raw":true})",
        R"({"prompt":"a","template":"x","raw":true})", R"({"prompt":"a","template":5})", R"({"prompt":"a","images":["x"]})"})
    EXPECT_FALSE(read_text(net::ollama::read_generate, refused)) << refused;
}

TEST(Ollama, AFormatBindsTheAnswer) {
  const auto object = read_text(net::ollama::read_generate, R"({"prompt":"a","format":"json"})");
  ASSERT_TRUE(object && object->constraint_spec);
  EXPECT_TRUE(std::holds_alternative<ConstraintSpec::JsonObject>(object->constraint_spec->kind));
  const auto schema = read_text(net::ollama::read_generate, R"({"prompt":"a","format":{"type":"object"}})");
  ASSERT_TRUE(schema && schema->constraint_spec);
  EXPECT_TRUE(std::holds_alternative<ConstraintSpec::JsonSchema>(schema->constraint_spec->kind));
  EXPECT_FALSE(read_text(net::ollama::read_generate, R"({"prompt":"a","format":""})")->constraint_spec);
}

// What a list and /api/show say of the model alike.
constexpr char kDetails[] = R"("details":{"parent_model":"","format":"gguf","family":"fake","families":["fake"],"parameter_size":"42",)"
                            R"("quantization_level":"Q4_K"}})";

TEST(Ollama, ListsAndShowsTheModels) {
  TestServer server;
  server.on_loop([&] {
    server.model().bytes = 7;
    server.model().weight_type = "Q4_K";
  });
  const std::string entry = R"({"models":[{"name":"fake-model","model":"fake-model","size":7,"digest":")";
  const auto without_digest = [](const std::string& body) { return std::regex_replace(body, std::regex("[0-9a-f]{64}"), "DIGEST"); };
  const std::string details = std::string(kDetails).substr(0, sizeof(kDetails) - 2);
  EXPECT_EQ(without_digest(server.ask(get("/api/tags")).body),
            entry + R"(DIGEST",)" + details + R"(,"modified_at":"2023-11-14T22:13:20Z"}]})");
  EXPECT_EQ(without_digest(server.ask(get("/api/ps")).body),
            entry + R"(DIGEST",)" + details + R"(,"expires_at":"2318-01-01T00:00:00Z","size_vram":0,"context_length":1000}]})");
  const std::string shown = server.ask(post("/api/show", R"({"model":"fake-model"})")).body;
  EXPECT_THAT(shown, HasSubstr(R"("model_info":{"general.architecture":"fake","general.parameter_count":42,"fake.context_length":1000})"));
  EXPECT_THAT(shown, HasSubstr(details));
  EXPECT_THAT(shown, HasSubstr(R"("template":"tools")"));
  EXPECT_THAT(shown, HasSubstr(R"("parameters":"temperature 0.8\ntop_k 40\n)"));
  EXPECT_THAT(shown, HasSubstr(R"("capabilities":["completion","tools","embedding","insert"])"));
  EXPECT_THAT(server.ask(get("/api/version")).body, HasSubstr(R"({"version":")"));
  server.on_loop([&] { server.model().fingerprint = "another"; });
  EXPECT_EQ(server.ask(get("/api/tags")).body.find(server.ask(get("/api/ps")).body.substr(0, 200)), 0U) << "one digest for both";
}

TEST(Ollama, ATemplateThatThinksSaysSo) {
  FakeCodec codec;
  codec.chat_template = "<think> </think>";
  TestServer server;
  server.on_loop([&] { server.model().codec = &codec; });
  EXPECT_THAT(server.ask(post("/api/show", "{}")).body, HasSubstr(R"("embedding","thinking")"));
}

// What a Modelfile says of the model.
TEST(Ollama, ItsMakersWishesHoldUnderThoseOfARequest) {
  FakeCodec codec;
  ServedModel model;
  model.codec = &codec;
  ModelSettings settings;
  settings.system = "Be kind.";
  settings.parameters = {{"temperature", 0.25}, {"top_k", 7}, {"num_ctx", 4096}, {"unheard_of", "x"}, {"stop", ValueList{"END"}}};
  settings.messages = {ValueDict{{"role", "user"}, {"content", "first"}}, ValueDict{{"role", "assistant"}, {"content", "second"}}};
  model.settings = std::make_shared<const ModelSettings>(settings);
  const auto read = [&](auto reader, const char* body) {
    std::string text = body;
    Value document = net::json::parse(text).value();
    return reader(document, model);
  };
  const auto roles = [](const net::Wish& wish) {
    std::string all;
    for (const Value& message : *std::get<ChatPrompt>(wish.prompt).messages.get_if<ValueList>())
      all += *message.find("content")->get_if<std::string>() + "|";
    return all;
  };
  const auto plain = read(net::ollama::read_chat, R"({"messages":[{"role":"user","content":"now"}]})");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(roles(*plain), "Be kind.|first|second|now|");
  EXPECT_FLOAT_EQ(plain->sampling.temperature, 0.25F);
  EXPECT_EQ(plain->sampling.top_k, 7);
  const auto own = read(net::ollama::read_chat, R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"now"}],)"
                                                R"("options":{"temperature":0.5}})");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(roles(*own), "Be brief.|first|second|now|");
  EXPECT_FLOAT_EQ(own->sampling.temperature, 0.5F);
  EXPECT_EQ(own->sampling.top_k, 7);
  EXPECT_EQ(roles(*read(net::ollama::read_generate, R"({"prompt":"now"})")), "Be kind.|first|second|now|");
  EXPECT_EQ(roles(*read(net::ollama::read_generate, R"({"prompt":"now","system":"Be brief."})")), "Be brief.|first|second|now|");
  const auto wrong = read(net::ollama::read_chat, R"({"messages":[{"role":"user","content":"now"},{"role":5}]})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().param, "messages[1].role") << "the model's own messages do not count";
}

TEST(Ollama, IsKnownByItsRoot) {
  TestServer server;
  const Reply root = server.ask(get("/"));
  EXPECT_EQ(root.body, "Ollama is running");
  EXPECT_EQ(root.headers.at("content-type"), "text/plain; charset=utf-8");
  for (const char* path : {"/", "/api/tags", "/api/version", "/api/ps"}) {
    RawClient client = server.connect();
    client.send("HEAD " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_reply(true).status, 200) << path;
  }
}

TEST(Ollama, WithoutAPromptAModelIsLoadedAlready) {
  TestServer server;
  const std::string head = R"({"model":"fake-model","created_at":"TIME",)";
  const std::string end = R"(,"done":true,"done_reason":"load"})";
  for (const char* body : {R"({"model":"fake-model"})", R"({"model":"fake-model","prompt":"","keep_alive":0})", R"({"keep_alive":"-1m"})"})
    EXPECT_EQ(timeless(server.ask(post("/api/generate", body)).body), head + R"("response":"")" + end) << body;
  EXPECT_EQ(timeless(server.ask(post("/api/chat", R"({"messages":[],"stream":true})")).body),
            head + R"("message":{"role":"assistant","content":""})" + end);
  EXPECT_EQ(server.ask(post("/api/chat", R"({"model":"other","messages":[]})")).status, 404);
  EXPECT_EQ(server.ask(post("/api/chat", "{}")).status, 400) << "no messages at all";
  server.on_loop([&] { EXPECT_TRUE(server.engine().submitted.empty()); });
}

TEST(Ollama, TakesDurationsAsGoWritesThem) {
  const auto read = [](const std::string& keep_alive) {
    return read_text(net::ollama::read_generate, R"({"prompt":"a","keep_alive":)" + keep_alive + "}");
  };
  for (const char* right : {"0", "-1", "1.5", R"("0")", R"("-1")", R"("5m")", R"("1h30m")", R"("1.5h")", R"("-1m")", R"("300ms")"})
    EXPECT_TRUE(read(right)) << right;
  for (const char* wrong : {R"("")", R"("m")", R"("5 m")", R"("5d")", R"("1.2.3s")", R"(".s")", "true", "[]"})
    EXPECT_FALSE(read(wrong)) << wrong;
}

}  // namespace
}  // namespace braid::test
