// POST /v1/embeddings: what is read, what the engine is asked for, and the two forms of a vector.
#include "net/openai/embeddings.h"

#include "net/fake_chat.h"
#include "net/test_server.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

// Each prompt's vector is (3, 4), or longer by its number of tokens.
void answer_with_vectors(TestServer& server) {
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest& request) {
      Finish finish;
      finish.usage.prompt_tokens = static_cast<std::int32_t>(request.prompt.size());
      return std::vector<TokenEvent>{PooledVector{{3.0F, 4.0F}}, finish};
    };
  });
}

TEST(Embeddings, AreExactAndHaveTheLengthOne) {
  TestServer server;
  answer_with_vectors(server);
  const Reply reply = server.ask(post("/v1/embeddings", R"({"model":"fake-model","input":["a",[98,99]],"encoding_format":"float"})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]},)"
                        R"({"object":"embedding","index":1,"embedding":[0.6,0.8]}],"model":"fake-model",)"
                        R"("usage":{"prompt_tokens":4,"total_tokens":4}})");
  server.on_loop([&] {
    const auto& submitted = server.engine().submitted;
    ASSERT_EQ(submitted.size(), 2U);
    EXPECT_TRUE(std::all_of(submitted.begin(), submitted.end(), [](const auto& request) { return request.pooling == Pooling::kLast; }));
    EXPECT_EQ(submitted[1].prompt, (std::vector<TokenId>{98, 99}));
  });
}

TEST(Embeddings, TellTheFingerprint) {
  TestServer server;
  answer_with_vectors(server);
  server.on_loop([&] { server.model().fingerprint = "fp_1"; });
  for (const auto& [path, body] :
       {std::pair{"/v1/embeddings", R"({"input":"a"})"}, std::pair{"/api/embed", R"({"input":"a"})"},
        std::pair{"/api/embeddings", R"({"prompt":"a"})"}, std::pair{"/pooling", R"({"input":"a","task":"embed"})"}}) {
    const Reply reply = server.ask(post(path, body));
    EXPECT_NE(reply.body.find(R"(,"system_fingerprint":"fp_1")"), std::string::npos) << path << reply.body;
  }
}

// What the SDKs ask for: the bytes of the floats.
TEST(Embeddings, AreGivenAsBase64) {
  TestServer server;
  answer_with_vectors(server);
  const Reply reply = server.ask(post("/v1/embeddings", R"({"input":"a","encoding_format":"base64"})"));
  EXPECT_NE(reply.body.find(R"("embedding":"mpkZP83MTD8=")"), std::string::npos) << reply.body;
}

TEST(Embeddings, ArePooledAsTheModelSays) {
  TestServer server;
  answer_with_vectors(server);
  server.on_loop([&] { server.model().pooling = Pooling::kMean; });
  server.ask(post("/embeddings", R"({"input":"a"})"));
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted.at(0).pooling, Pooling::kMean); });
}

// Words of a name go before each text, those that the model itself names where a request names none.
TEST(Embeddings, HaveTheWordsOfTheirPurpose) {
  TestServer server;
  answer_with_vectors(server);
  server.on_loop([&] {
    server.model().vectors.prompts = {{"query", "Q:"}, {"document", "D:"}};
    server.model().vectors.default_prompt = "document";
  });
  for (const char* body : {R"({"input":"a"})", R"({"input":"a","prompt_name":"query"})", R"({"input":[97]})"})
    EXPECT_EQ(server.ask(post("/v1/embeddings", body)).status, 200) << body;
  server.on_loop([&] {
    EXPECT_EQ(server.engine().submitted.at(0).prompt, (std::vector<TokenId>{kBos, 'D', ':', 'a'}));
    EXPECT_EQ(server.engine().submitted.at(1).prompt, (std::vector<TokenId>{kBos, 'Q', ':', 'a'}));
    EXPECT_EQ(server.engine().submitted.at(2).prompt, (std::vector<TokenId>{'a'}));
  });
}

// A list of vectors, each cut and scaled like any other.
TEST(Embeddings, OfEachTokenAreAListOfVectors) {
  TestServer server;
  server.on_loop([&] {
    server.model().vectors.width = 2;
    server.engine().script = [](const GenerationRequest& request) {
      return std::vector<TokenEvent>{
          PooledVector{request.pooling == Pooling::kEach ? std::vector{3.0F, 4.0F, 0.0F, -5.0F} : std::vector{1.0F, 0.0F}}, Finish{}};
    };
  });
  const auto ask = [&](const char* route, const char* body) { return server.ask(post(route, body)).body; };
  EXPECT_NE(ask("/v1/embeddings", R"({"input":"a"})").find(R"("embedding":[1,0])"), std::string::npos);
  const std::string pooled = ask("/pooling", R"({"input":"a","task":"token_embed"})");
  EXPECT_NE(pooled.find(R"({"object":"pooling","index":0,"data":[[0.6,0.8],[0,-1]]})"), std::string::npos) << pooled;
  server.on_loop([&] { server.model().pooling = Pooling::kEach; });
  EXPECT_NE(ask("/v1/embeddings", R"({"input":"a","dimensions":1})").find(R"("embedding":[[1],[0]])"), std::string::npos);
  EXPECT_NE(ask("/v1/embeddings", R"({"input":"a","encoding_format":"base64"})").find(R"("embedding":["mpkZP83MTD8=","AAAAAAAAgL8="])"),
            std::string::npos);
  EXPECT_NE(ask("/embedding", R"({"content":"a"})").find(R"("embedding":[[0.6,0.8],[0,-1]])"), std::string::npos);
  EXPECT_EQ(server.ask(post("/api/embed", R"({"model":"fake-model","input":"a"})")).status, 400);
}

TEST(Embeddings, NameTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> faults[] = {
      {"{}", "input"},
      {R"({"input":""})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":["a",""]})", "input[1]"},
      {R"({"input":[1,-1]})", "input[1]"},
      {R"({"input":[[1],[259]]})", "input[1][0]"},
      {R"({"input":"a","encoding_format":"int8"})", "encoding_format"},
      {R"({"input":"a","dimensions":0})", "dimensions"},
  };
  for (const auto& [body, param] : faults) {
    const auto call = read_text(net::openai::read_embeddings, body);
    ASSERT_FALSE(call) << body;
    EXPECT_EQ(call.error().param, param) << body;
  }
}

TEST(OllamaEmbeddings, AreAListOfVectorsOrOne) {
  TestServer server;
  answer_with_vectors(server);
  const std::string both = server.ask(post("/api/embed", R"({"model":"fake-model","input":["a","b"]})")).body;
  EXPECT_EQ(both.find(R"({"model":"fake-model","embeddings":[[0.6,0.8],[0.6,0.8]],"total_duration":)"), 0U) << both;
  EXPECT_NE(both.find(R"("load_duration":0,"prompt_eval_count":4})"), std::string::npos) << both;
  EXPECT_EQ(server.ask(post("/api/embed", R"({"input":"a","keep_alive":"5m","options":{"num_ctx":2048}})")).status, 200);
  EXPECT_EQ(server.ask(post("/api/embeddings", R"({"model":"fake-model","prompt":"a"})")).body, R"({"embedding":[0.6,0.8]})");
  EXPECT_EQ(server.ask(post("/api/embed", R"({"input":""})")).body, R"({"model":"fake-model","embeddings":[]})");
  EXPECT_EQ(server.ask(post("/api/embeddings", R"({"prompt":""})")).body, R"({"embedding":[]})");
}

TEST(OllamaEmbeddings, CutTheEndOffATextUnlessTheyMayNot) {
  TestServer server;
  answer_with_vectors(server);
  const std::string text = std::string(600, 'a') + std::string(600, 'b');
  EXPECT_EQ(server.ask(post("/api/embed", R"({"input":")" + text + "\"}")).status, 200);
  server.on_loop([&] {
    const std::vector<TokenId>& prompt = server.engine().submitted.at(0).prompt;
    ASSERT_EQ(prompt.size(), 1000U) << "the context";
    EXPECT_EQ(prompt[0], kBos);
    EXPECT_EQ(prompt[600], 'a');
    EXPECT_EQ(prompt[601], 'b');
  });
  EXPECT_EQ(server.ask(post("/api/embed", R"({"truncate":false,"input":")" + text + "\"}")).status, 400);
}

TEST(OllamaEmbeddings, SayWhichFieldIsWrong) {
  TestServer server;
  const std::pair<const char*, const char*> faults[] = {
      {"{}", "'input' is missing"},
      {R"({"input":7})", "'input'"},
      {R"({"input":["a",7]})", "'input[1]'"},
      {R"({"input":["a",""]})", "'input[1]'"},
      {R"({"input":"a","dimensions":2})", "'dimensions'"},
      {R"({"input":"a","truncate":1})", "'truncate'"},
      {R"({"input":"a","options":{"temperature":-1}})", "'options.temperature'"},
  };
  for (const auto& [body, words] : faults) {
    const Reply reply = server.ask(post("/api/embed", body));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.body.find(words), std::string::npos) << reply.body;
  }
  EXPECT_NE(server.ask(post("/api/embeddings", R"({"prompt":["a",1]})")).body.find("'prompt[1]'"), std::string::npos);
}

}  // namespace
}  // namespace braid::test
