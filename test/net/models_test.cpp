// Several models behind one server: each request is answered by the one that it names.
#include "net/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

using testing::HasSubstr;

// A server with a second model, "other", whose engine says "Other".
class TwoModels : public testing::Test {
 protected:
  TwoModels() {
    server_.on_loop([this] {
      other_engine_.script = [](const GenerationRequest&) { return events_of("Other"); };
      server_.status().models = ModelDirectory({&server_.model(), &other_});
    });
  }

  FakeEngine other_engine_;
  FakeCodec codec_;
  ServedModel other_ = {"other", 0, 500, "fake", 7, &other_engine_, &codec_};
  TestServer server_;
};

TEST_F(TwoModels, AnswerByTheirNameInEveryDialect) {
  const std::string chat = R"(,"messages":[{"role":"user","content":"a"}],"max_tokens":9})";
  const std::pair<const char*, std::string> bodies[] = {{"/v1/completions", R"(,"prompt":"a"})"},
                                                        {"/v1/chat/completions", chat},
                                                        {"/v1/messages", chat},
                                                        {"/v1/responses", R"(,"input":"a"})"},
                                                        {"/api/chat", R"(,"stream":false)" + chat},
                                                        {"/api/generate", R"(,"stream":false,"prompt":"a"})"}};
  for (const auto& [path, rest] : bodies) {
    const Reply first = server_.ask(post(path, R"({"model":"fake-model")" + rest));
    EXPECT_THAT(first.body, HasSubstr(R"("Hi")")) << path;
    const Reply second = server_.ask(post(path, R"({"model":"other")" + rest));
    EXPECT_THAT(second.body, HasSubstr(R"("Other")")) << path;
    EXPECT_THAT(second.body, HasSubstr(R"("model":"other")")) << path;
    const Reply unknown = server_.ask(post(path, R"({"model":"third")" + rest));
    EXPECT_EQ(unknown.status, 404) << path;
    EXPECT_THAT(unknown.body, HasSubstr("this server has 'fake-model', 'other'")) << path;
  }
}

TEST_F(TwoModels, TheFirstOneAnswersWhoNamesNone) {
  for (const char* body :
       {R"({"prompt":"a"})", R"({"prompt":"a","model":""})", R"({"prompt":"a","model":"default"})", R"({"prompt":"a","model":null})"})
    EXPECT_THAT(server_.ask(post("/v1/completions", body)).body, HasSubstr(R"("model":"fake-model")")) << body;
  EXPECT_EQ(server_.ask(post("/v1/completions", R"({"prompt":"a","model":4})")).status, 400);
}

TEST_F(TwoModels, AreListedAndShown) {
  const std::string list = server_.ask(get("/v1/models")).body;
  EXPECT_THAT(list, HasSubstr(R"("id":"fake-model")"));
  EXPECT_THAT(list, HasSubstr(R"("id":"other")"));
  EXPECT_THAT(server_.ask(get("/v1/models/other")).body, HasSubstr(R"("max_model_len":500)"));
  EXPECT_THAT(server_.ask(get("/props?model=other")).body, HasSubstr(R"("model_alias":"other")"));
  EXPECT_EQ(server_.ask(get("/props?model=third")).status, 404);
  EXPECT_EQ(server_.ask(get("/cache/stats?model=third")).status, 404);
}

TEST_F(TwoModels, EachSeriesSaysOfWhichItIs) {
  server_.ask(post("/v1/completions", R"({"model":"other","prompt":"a"})"));
  const std::string text = server_.ask(get("/metrics")).body;
  EXPECT_THAT(text, HasSubstr("braid_sequences_submitted_total{model=\"other\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("braid_sequences_submitted_total{model=\"fake-model\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("braid_queue_depth{model=\"other\",class=\"normal\"} "));
  EXPECT_EQ(text.find("# TYPE braid_kv_blocks_total"), text.rfind("# TYPE braid_kv_blocks_total")) << "one family, two series";
}

// Long bodies are parsed elsewhere, and their model is known only then.
TEST_F(TwoModels, ALongBodyNamesItsModelToo) {
  const std::string body =
      R"({"prompt":")" + std::string(300, 'x') + R"(","padding":")" + std::string(40'000, 'x') + R"(","model":"other"})";
  EXPECT_THAT(server_.ask(post("/v1/completions", body)).body, HasSubstr(R"("text":"Other")"));
}

TEST_F(TwoModels, AnAnswerIsAbortedAtItsOwnEngine) {
  server_.on_loop([this] { other_engine_.script = nullptr; });
  RawClient client = server_.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","model":"other","max_tokens":9})"));
  ASSERT_TRUE(server_.eventually([this] { return other_engine_.live.size() == 1; }));
  std::string id;
  server_.on_loop([&] { id = other_engine_.submitted.at(0).id; });
  EXPECT_THAT(server_.ask(get("/slots")).body, HasSubstr(id));
  EXPECT_EQ(server_.ask(post("/v1/abort", R"({"id":")" + id + R"("})")).status, 200);
  EXPECT_EQ(client.read_reply().status, 499);
}

}  // namespace
}  // namespace braid::test
