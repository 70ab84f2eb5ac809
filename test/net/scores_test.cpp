// /v1/rerank, /v1/score, /v1/classifications: what the engine is asked for, and what is cut of it.
#include "net/fake_chat.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::test {
namespace {

constexpr TokenId kPart = 258;  // between two texts

// Joins two texts, which both count.
class PairCodec final : public FakeCodec {
 public:
  Result<EncodedPair> encode_pair(std::string_view first, std::string_view second) const override {
    EncodedPair pair;
    pair.tokens.push_back(kBos);
    for (const char c : first) pair.tokens.push_back(static_cast<unsigned char>(c));
    pair.tokens.push_back(kPart);
    pair.second.begin = pair.tokens.size();
    pair.second_text = static_cast<std::int32_t>(pair.second.begin);
    for (const char c : second) pair.tokens.push_back(static_cast<unsigned char>(c));
    pair.second.end = pair.tokens.size();
    pair.tokens.push_back(kEos);
    return pair;
  }
};

struct Scores : testing::Test {
  TestServer server;
  PairCodec codec;

  Scores() {
    server.on_loop([this] {
      server.model().codec = &codec;
      server.model().context_length = 2'000;
      server.model().classes.labels = {"fits"};
      server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>{PooledVector{{1.0F}}, Finish{}}; };
    });
  }

  // The texts of what was submitted by this request, control tokens as signs.
  std::vector<std::string> prompts(const std::string& path, const std::string& body) {
    server.on_loop([this] { server.engine().submitted.clear(); });
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<std::string> texts;
    server.on_loop([&] {
      for (const GenerationRequest& request : server.engine().submitted) {
        std::string& text = texts.emplace_back();
        for (const TokenId token : request.prompt)
          text += token < 256 ? static_cast<char>(token) : token == kBos ? '<' : token == kPart ? '|' : '>';
      }
    });
    return texts;
  }
  void expect_refused(const std::string& path, const std::string& body, const std::string& param) {
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find("\"param\":\"" + param + "\""), std::string::npos) << reply.body;
  }
};

using Texts = std::vector<std::string>;

TEST_F(Scores, OfPairsAreCutInTheSecondText) {
  constexpr const char* kRank = R"({{"query":"where","documents":["short","a long document"],"truncate_prompt_tokens":{}}})";
  EXPECT_EQ(prompts("/v1/rerank", fmt::format(kRank, 13)), (Texts{"<where|short>", "<where|a lon>"}));
  EXPECT_EQ(prompts("/v1/rerank", fmt::format(kRank, 9)), (Texts{"<where|s>", "<where|a>"}));
  expect_refused("/v1/rerank", fmt::format(kRank, 8), "truncate_prompt_tokens");
  server.on_loop([this] { server.model().context_length = 12; });
  EXPECT_EQ(prompts("/v1/score", R"({"text_1":"where","text_2":"a long one","truncate_prompt_tokens":-1})"), (Texts{"<where|a lo>"}));
  expect_refused("/v1/score", R"({"text_1":"where","text_2":"a long one"})", "text_2");
}

// What asks for a judgment, and what makes it one, stays.
TEST_F(Scores, OfJudgmentsAreCutInTheDocument) {
  server.on_loop([this] { server.model().pairs = PairForm::kJudgment; });
  const std::string body = R"({"query":"where","documents":["here and there"],"instruction":"Find it")";
  const Texts whole = prompts("/v1/rerank", body + "}");
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_NE(whole[0].find("<Instruct>: Find it\n<Query>: where\n<Document>: here and there<|im_end|>\n"), std::string::npos) << whole[0];
  EXPECT_TRUE(whole[0].ends_with("<think>\n\n</think>\n\n")) << whole[0];
  const auto most = [&](std::size_t tokens) { return body + fmt::format(R"(,"truncate_prompt_tokens":{}}})", tokens); };
  std::string cut = whole[0];
  cut.erase(cut.find(" and there"), 10);
  EXPECT_EQ(prompts("/v1/rerank", most(cut.size())), Texts{cut});
  EXPECT_EQ(prompts("/v1/rerank", most(whole[0].size())), whole);
  expect_refused("/v1/rerank", most(cut.size() - 5), "truncate_prompt_tokens");
  server.on_loop([&] { server.model().context_length = static_cast<std::int32_t>(cut.size()); });
  EXPECT_EQ(prompts("/v1/score", R"({"text_1":"where","text_2":["here and there"],"instruction":"Find it","truncate_prompt_tokens":-1})"),
            Texts{cut});
}

TEST_F(Scores, OfChatsAreTheirTemplates) {
  EXPECT_EQ(prompts("/v1/classify", R"({"messages":[{"role":"user","content":"a"}]})"), Texts{"user:a;"});
  EXPECT_EQ(prompts("/v1/rewards/score", R"({"messages":[[{"role":"user","content":"a"}],)"
                                         R"([{"role":"user","content":"b"},{"role":"assistant","content":"c"}]]})"),
            (Texts{"user:a;", "user:b;assistant:c;"}));
  expect_refused("/v1/rewards/score", R"({"messages":[[{"role":"user","content":"a"}],[]]})", "messages[1]");
}

TEST_F(Scores, ReturnDocumentsAsTheyWereGiven) {
  const std::string body = R"({"query":"q","documents":["a",{"text":"b","id":7,"of":["x",null]}],"return_documents":true})";
  const std::string answer = server.ask(post("/v1/rerank", body)).body;
  EXPECT_NE(answer.find(R"("document":{"text":"a"})"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("document":{"text":"b","id":7,"of":["x",null]})"), std::string::npos) << answer;
}

TEST_F(Scores, OfClassesAreProbabilitiesOrAsTheyAre) {
  const auto data = [&](const std::string& more) {
    return server.ask(post("/pooling", R"({"input":"a","task":"classify")" + more + "}")).body;
  };
  EXPECT_NE(data("").find(R"("data":[1])"), std::string::npos) << data("");  // a softmax of one
  server.on_loop([this] { server.model().classes.activation = ScoreActivation::kSigmoid; });
  EXPECT_NE(data("").find(R"("data":[0.731)"), std::string::npos) << data("");
  EXPECT_NE(data(R"(,"activation":false)").find(R"("data":[1])"), std::string::npos);
  expect_refused("/pooling", R"({"input":"a","task":"classify","logits":true})", "logits");
  expect_refused("/v1/rewards/score", R"({"input":"a","logits":true})", "logits");
}

// A body is read again for each of its conversations.
TEST_F(Scores, OfManyChatsHaveLittleBesides) {
  std::string chats = R"([{"role":"user","content":"a"}])";
  for (int i = 1; i < 1'000; ++i) chats += R"(,[{"role":"user","content":"a"}])";
  const auto body = [&](std::size_t bytes) {
    return R"({"chat_template_kwargs":{"words":")" + std::string(bytes, 'w') + R"("},"messages":[)" + chats + "]}";
  };
  expect_refused("/v1/rewards/score", body(40'000), "messages");
  server.on_loop([this] { server.model().most_waiting = 2'000; });
  EXPECT_EQ(prompts("/v1/rewards/score", body(100)).size(), 1'000U);
}

}  // namespace
}  // namespace braid::test
