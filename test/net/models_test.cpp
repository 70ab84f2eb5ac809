// Several models behind one server: each request is answered by the one that it names.
#include "braid/model_host.h"
#include "net/test_server.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

TEST_F(TwoModels, AreNamedByOneMemberOrByBothAlike) {
  for (const char* names : {R"("model_id":"other")", R"("model":"other","model_id":"other")", R"("model":"other","model_id":null)"})
    EXPECT_THAT(server_.ask(post("/v1/completions", "{\"prompt\":\"a\"," + std::string(names) + "}")).body, HasSubstr(R"("Other")"))
        << names;
  for (const auto& [path, rest] : {std::pair{"/v1/completions", R"(,"prompt":"a"})"},
                                   {"/tokenize", R"(,"content":"a"})"},
                                   {"/v1/predict", R"(,"inputs":{}})"},
                                   {"/v1/rl/act", R"(,"observations":["a"]})"}}) {
    const Reply refused = server_.ask(post(path, R"({"model":"fake-model","model_id":"other")" + std::string(rest)));
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, HasSubstr("'model' and 'model_id' are both there, and 'other' is another name")) << path;
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

// A host whose only model, "late", is loaded when the test says so.
class LateHost final : public ModelHost {
 public:
  std::vector<KnownModel> known() const override { return {{.id = "late"}}; }
  Result<std::string> find(std::string_view name) const override {
    if (name == "late") return std::string(name);
    return Error{ErrorCode::kNotFound, "no such model", "model"};
  }
  ModelHold take(std::string_view name, std::optional<KeepAlive> keep_alive) override {
    kept = keep_alive;
    return name == "late" ? loaded : nullptr;
  }
  std::shared_ptr<ModelWait> ask(std::string name, std::optional<KeepAlive>) override {
    auto wait = std::make_shared<ModelWait>();
    if (const Result<std::string> id = find(name); !id) wait->result = id.error();
    waits.push_back(wait);
    return wait;
  }
  std::shared_ptr<ModelWait> unload(std::string) override { return std::make_shared<ModelWait>(); }
  std::shared_ptr<ModelWait> sleep(std::string, bool) override { return std::make_shared<ModelWait>(); }
  std::shared_ptr<ModelWait> wake(std::string) override { return std::make_shared<ModelWait>(); }

  std::size_t waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(waits, [](const auto& wait) { return !wait.expired(); }));
  }
  void answer(const Result<ModelHold>& result) {
    for (const std::weak_ptr<ModelWait>& wait : waits) {
      const std::shared_ptr<ModelWait> waiting = wait.lock();
      if (waiting == nullptr || waiting->result) continue;
      waiting->result = result;
      waiting->arrived.notify();
    }
  }

  ModelHold loaded;
  std::optional<KeepAlive> kept;
  std::vector<std::weak_ptr<ModelWait>> waits;
};

class ModelsToBeLoaded : public TwoModels {
 protected:
  ModelsToBeLoaded() {
    server_.on_loop([this] { server_.status().host = &host_; });
  }
  ~ModelsToBeLoaded() override {
    server_.on_loop([this] { server_.status().host = nullptr; });
  }
  ModelHold hold() { return {std::make_shared<int>(), &other_}; }
  bool somebody_waits() {
    return server_.eventually([this] { return host_.waiting() > 0; });
  }

  LateHost host_;
};

TEST_F(ModelsToBeLoaded, AreWaitedForByEveryKindOfRequest) {
  const std::string padding = R"(,"padding":")" + std::string(40'000, 'x') + '"';
  const std::pair<const char*, std::string> bodies[] = {{"/v1/completions", R"(,"prompt":"a"})"},
                                                        {"/v1/completions", padding + R"(,"prompt":"a"})"},
                                                        {"/tokenize", R"(,"prompt":"a"})"},
                                                        {"/tokenize", padding + R"(,"prompt":"a"})"}};
  for (const auto& [path, rest] : bodies) {
    RawClient client = server_.connect();
    client.send(post(path, R"({"model":"late")" + rest));
    ASSERT_TRUE(somebody_waits()) << path;
    server_.on_loop([this] { host_.answer(hold()); });
    EXPECT_EQ(client.read_reply().status, 200) << path;
  }
}

TEST_F(ModelsToBeLoaded, AreHeldUntilTheAnswerHasEnded) {
  std::weak_ptr<const ServedModel> held;
  server_.on_loop([&] {
    other_engine_.script = [](const GenerationRequest&) { return std::vector<TokenEvent>(); };  // no end
    const ModelHold one = hold();
    held = one;
    host_.loaded = one;
  });
  RawClient client = server_.connect();
  client.send(post("/v1/completions", R"({"model":"late","prompt":"a","stream":true})"));
  ASSERT_TRUE(server_.eventually([this] { return other_engine_.submitted.size() == 1; }));
  server_.on_loop([this] { host_.loaded = nullptr; });
  server_.on_loop([&] { EXPECT_FALSE(held.expired()); });
  client.reset();
  EXPECT_TRUE(server_.eventually([&] { return held.expired(); }));
}

TEST_F(ModelsToBeLoaded, SayWhyTheyAreNotAndWhenToComeAgain) {
  RawClient client = server_.connect();
  client.send(post("/v1/completions", R"({"model":"late","prompt":"a"})"));
  ASSERT_TRUE(somebody_waits());
  server_.on_loop([this] {
    Error error{ErrorCode::kModelNotLoaded, "no room", "model"};
    error.retry_after = std::chrono::seconds(7);
    host_.answer(error);
  });
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("retry-after"), "7");
  EXPECT_EQ(server_.ask(post("/v1/completions", R"({"model":"nobody","prompt":"a"})")).status, 404);
}

TEST_F(ModelsToBeLoaded, AreNotWaitedForByWhoHasLeft) {
  for (const char* path : {"/v1/completions", "/tokenize"}) {
    RawClient client = server_.connect();
    client.send(post(path, R"({"model":"late","prompt":"a"})"));
    ASSERT_TRUE(somebody_waits());
    client.reset();
    EXPECT_TRUE(server_.eventually([this] { return host_.waiting() == 0; })) << path;
  }
}

}  // namespace
}  // namespace braid::test
