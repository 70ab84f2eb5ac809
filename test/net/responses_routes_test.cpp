// What the Responses API does besides answering: counting, cancelling, compacting.
#include "net/json/parse.h"
#include "net/json/write_value.h"
#include "net/test_server.h"
#include "net/wish/seal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string made_id(const std::string& body) {
  const std::size_t at = body.find("resp_");
  return at == std::string::npos ? "" : body.substr(at, 29);
}

std::string engine_prompt(TestServer& server) {
  std::string text;
  server.on_loop([&] {
    const auto& prompt = server.engine().submitted.back().prompt;
    text.assign(prompt.begin(), prompt.end());
  });
  return text;
}

Value value_of(std::string text) { return net::json::parse(text).value(); }

std::string json_of(const Value& value) {
  std::string text;
  net::json::append_value(text, value);
  return text;
}

TEST(ResponseTokens, AreThoseThatTheResponseWouldTake) {
  TestServer server;
  const std::string first = server.ask(post("/v1/responses", R"({"input":"one"})")).body;
  const std::string previous = fmt::format(R"("previous_response_id":"{}",)", made_id(first));
  for (const std::string& body :
       {std::string(R"({"input":"hello","instructions":"Be kind."})"), "{" + previous + R"("input":"two"})",
        std::string(R"({"input":[{"role":"user","content":"a"}],"tools":[{"type":"function","name":"f"}],"stream":true})")}) {
    const Reply counted = server.ask(post("/v1/responses/input_tokens", body));
    server.ask(post("/v1/responses", body));
    EXPECT_EQ(counted.body, fmt::format(R"({{"object":"response.input_tokens","input_tokens":{}}})", engine_prompt(server).size()));
  }
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted.size(), 4U); });  // counting generates nothing
}

TEST(ResponseTokens, ErrorsNameTheField) {
  TestServer server;
  const auto param_of = [&](const std::string& body) { return server.ask(post("/v1/responses/input_tokens", body)).body; };
  EXPECT_THAT(param_of(R"({"input":[{"role":"user","content":[{"type":"input_text","text":1}]}]})"),
              HasSubstr(R"("param":"input[0].content[0].text")"));
  EXPECT_THAT(param_of(R"({"input":"x","previous_response_id":"resp_x"})"), HasSubstr(R"("code":"previous_response_not_found")"));
  EXPECT_THAT(param_of(R"({"input":"x","model":"other"})"), HasSubstr(R"("code":"model_not_found")"));
}

TEST(CancelledResponse, IsToldAsFarAsItHasComeAndKept) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>(); }; });
  RawClient client = server.connect();
  client.send(post("/v1/responses", R"({"input":"x","stream":true,"metadata":{"a":"b"}})"));
  const std::string id = made_id(client.read_until("response.in_progress"));
  server.on_loop([&] { server.engine().push(0, Token{'H', 0.0F, {}}); });
  client.read_until(R"("delta":"H")");
  const std::string path = fmt::format("/v1/responses/{}/cancel", id);
  const Reply cancelled = server.ask(post(path, ""));
  ASSERT_EQ(cancelled.status, 200) << cancelled.body;
  EXPECT_THAT(cancelled.body, HasSubstr(fmt::format(R"({{"id":"{}","object":"response",)", id)));
  EXPECT_THAT(cancelled.body, HasSubstr(R"("status":"cancelled","model":"fake-model","error":null,)"));
  EXPECT_THAT(cancelled.body,
              HasSubstr(R"("status":"incomplete","type":"message","role":"assistant","content":[{"type":"output_text","text":"H")"));
  EXPECT_THAT(cancelled.body, HasSubstr(R"("metadata":{"a":"b"})"));
  EXPECT_THAT(client.read_until("event: error"), HasSubstr("event: response.failed"));
  EXPECT_EQ(server.ask(get("/v1/responses/" + id)).body, cancelled.body);
  EXPECT_EQ(server.ask(post(path, "{}")).body, cancelled.body) << "once more";
}

TEST(CancelledResponse, MustBeOneOfTheClientsThatRuns) {
  TestServer server;
  const std::string ended = made_id(server.ask(post("/v1/responses", R"({"input":"x"})")).body);
  const Reply late = server.ask(post(fmt::format("/v1/responses/{}/cancel", ended), ""));
  EXPECT_EQ(late.status, 400);
  EXPECT_THAT(late.body, HasSubstr(R"("param":"id")"));
  EXPECT_EQ(server.ask(post("/v1/responses/resp_x/cancel", "")).status, 404);
  EXPECT_EQ(server.ask(post("/v1/responses/resp_x/cancel", "[]")).status, 400);
}

TEST(CancelledResponse, IsNotFoundByAnotherClient) {
  net::ServerOptions options = test_options();
  for (const char* name : {"mine", "theirs"}) options.api_keys.push_back({name, net::access::digest_of(name), {}});
  TestServer server(std::move(options));
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>(); }; });
  RawClient client = server.connect();
  client.send(post("/v1/responses", R"({"input":"x","stream":true,"store":false})", "Authorization: Bearer mine\r\n"));
  const std::string id = made_id(client.read_until("response.in_progress"));
  const std::string path = fmt::format("/v1/responses/{}/cancel", id);
  EXPECT_EQ(server.ask(post(path, "", "Authorization: Bearer theirs\r\n")).status, 404);
  EXPECT_EQ(server.ask(post(path, "", "Authorization: Bearer mine\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/responses/" + id, "Authorization: Bearer mine\r\n")).status, 404) << "it was not to be kept";
}

TEST(Compaction, OldestTurnsBecomeOneSealedItem) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("Foxes."); }; });
  const Reply reply = server.ask(post("/v1/responses/compact", R"({"instructions":"Be kind.","input":[
      {"role":"developer","content":"Only English."},{"role":"user","content":"one"},{"role":"assistant","content":"1"},
      {"role":"user","content":"two"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c","output":"2"}]})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::string prompt = engine_prompt(server);
  EXPECT_THAT(prompt, HasSubstr("system:Be kind.;developer:Only English.;user:one;assistant:1;user:Summarise our conversation"));
  EXPECT_THAT(prompt, Not(HasSubstr("two")));
  const Value answer = value_of(reply.body);
  EXPECT_EQ(*answer.find("object"), Value("response.compaction"));
  const ValueList& output = *answer.find("output")->get_if<ValueList>();
  ASSERT_EQ(output.size(), 5U) << reply.body;
  EXPECT_EQ(*output[0].find("role"), Value("developer"));
  EXPECT_EQ(*output[1].find("type"), Value("compaction"));
  EXPECT_EQ(net::wish::opened(*output[1].find("encrypted_content")->get_if<std::string>()), "Foxes.");
  EXPECT_EQ(json_of(*output[2].find("content")), R"([{"type":"input_text","text":"two"}])");
  EXPECT_EQ(*output[4].find("type"), Value("function_call_output"));
  EXPECT_EQ(*answer.find("usage")->find("output_tokens"), Value(6));

  // The next request goes on from it.
  server.ask(post("/v1/responses", R"({"input":)" + json_of(Value(output)) + "}"));
  EXPECT_THAT(engine_prompt(server), HasSubstr("user:This is a summary of our conversation so far:\n\nFoxes.;user:two;assistant"));
}

TEST(Compaction, TakesTheConversationOfThePreviousResponse) {
  TestServer server;
  const std::string first =
      server.ask(post("/v1/responses", R"({"input":[{"role":"system","content":"Short."},{"role":"user","content":"one"}]})")).body;
  const Reply reply =
      server.ask(post("/v1/responses/compact", fmt::format(R"({{"previous_response_id":"{}","input":"two"}})", made_id(first))));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_THAT(engine_prompt(server), HasSubstr("system:Short.;user:one;assistant:Hi;user:Summarise"));
  const ValueList output = *value_of(reply.body).find("output")->get_if<ValueList>();
  ASSERT_EQ(output.size(), 3U) << reply.body;
  EXPECT_EQ(*output[0].find("role"), Value("system"));
  EXPECT_EQ(*output[1].find("type"), Value("compaction"));
  EXPECT_EQ(json_of(*output[2].find("content")), R"([{"type":"input_text","text":"two"}])");
}

// A turn that is the whole conversation, or that is long itself, is summarised as well.
TEST(Compaction, ALastTurnThatIsLongOrAloneDoesNotStay) {
  TestServer server;
  const auto kept_of = [&](const std::string& input) {
    const Reply reply = server.ask(post("/v1/responses/compact", R"({"input":)" + input + "}"));
    const Value answer = value_of(reply.body);
    const Value* output = answer.find("output");
    return output != nullptr ? output->get_if<ValueList>()->size() - 1 : 99;
  };
  server.on_loop([&] { server.model().context_length = 1000; });
  EXPECT_EQ(kept_of(R"([{"role":"user","content":"one"},{"role":"assistant","content":"1"}])"), 0U);
  EXPECT_EQ(kept_of(R"("one")"), 0U);
  const std::string before = R"([{"role":"user","content":"one"},{"role":"assistant","content":"1"},{"role":"user","content":")";
  EXPECT_EQ(kept_of(before + std::string(300, 'x') + R"("}])"), 1U);
  EXPECT_EQ(kept_of(before + std::string(1100, 'x') + R"("}])"), 99U) << "which no context has room for";
}

TEST(Compaction, ErrorsNameTheField) {
  TestServer server;
  const auto body_of = [&](const std::string& body) { return server.ask(post("/v1/responses/compact", body)).body; };
  EXPECT_THAT(body_of("{}"), HasSubstr(R"("param":"input")"));
  EXPECT_THAT(body_of(R"({"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user"}]})"),
              HasSubstr(R"("param":"input[2].content")"));
  EXPECT_THAT(body_of(R"({"input":"x","previous_response_id":"resp_x"})"), HasSubstr(R"("code":"previous_response_not_found")"));
  EXPECT_THAT(body_of(R"({"input":"x","temperature":"hot"})"), HasSubstr(R"("param":"temperature")"));
}

}  // namespace
}  // namespace braid::test
