// Several choices, the best of several, echoed prompts and what else a request may ask to be told.
#include "net/fake_constraints.h"
#include "net/test_server.h"

#include <gtest/gtest.h>

namespace braid::test {
namespace {

// The prompt's tokens with log-probability -1 each (the first without), then "Hi" whose tokens have -`weight` each.
std::vector<TokenEvent> scored_events(const GenerationRequest& request, float weight = 2.0F) {
  std::vector<TokenEvent> events;
  if (request.prompt_logprobs >= 0) {
    PromptTokens prompt;
    for (const TokenId id : request.prompt) {
      PromptToken token;
      token.id = id;
      if (!prompt.tokens.empty()) {
        token.logprob = -1.0F;
        token.top = {{'z', -0.5F}, {id, -1.0F}};
      }
      prompt.tokens.push_back(std::move(token));
    }
    events.push_back(std::move(prompt));
  }
  Finish finish;
  finish.reason = FinishReason::kLength;
  for (const char c : std::string_view("Hi").substr(0, static_cast<std::size_t>(std::min(request.stop.max_tokens, 2)))) {
    events.push_back(Token{c, -weight, {}});
    ++finish.usage.completion_tokens;
  }
  finish.usage.cached_tokens = 1;
  events.push_back(std::move(finish));
  return events;
}

std::string ask(TestServer& server, std::string_view path, std::string_view body) { return normalized(server.ask(post(path, body)).body); }

class Choices : public testing::Test {
 protected:
  Choices() {
    server.on_loop([this] {
      server.engine().script = [](const GenerationRequest& request) {
        return scored_events(request, 1.0F + static_cast<float>(request.sampling.choice % 3));
      };
    });
  }
  TestServer server;
};

TEST_F(Choices, ShareAPromptAndDifferInTheirKey) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":[[7,8],[9]],"n":3,"seed":5})");
  EXPECT_NE(body.find(R"("index":5)"), std::string::npos) << body;
  EXPECT_EQ(body.find(R"("index":6)"), std::string::npos);
  EXPECT_NE(body.find(R"("prompt_tokens":3,"completion_tokens":12,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":2})"),
            std::string::npos)
      << body;
  server.on_loop([this] {
    const auto& submitted = server.engine().submitted;
    ASSERT_EQ(submitted.size(), 6U);
    for (std::uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(submitted[i].sampling.choice, i);
      EXPECT_EQ(submitted[i].sampling.seed, 5U);
      EXPECT_EQ(submitted[i].prompt.size(), i < 3 ? 2U : 1U);
      EXPECT_TRUE(submitted[i].id.ends_with("/" + std::to_string(i)));
    }
  });
}

TEST_F(Choices, BeyondTheQueueAreRefusedForGood) {
  server.on_loop([this] { server.model().most_waiting = 5; });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":[[7,8]],"n":5})")).status, 200);
  const Reply refused = server.ask(post("/v1/completions", R"({"prompt":[[7,8],[9]],"n":3})"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("6 answers are asked for at once, and this server's queue holds 5"), std::string::npos) << refused.body;
}

TEST_F(Choices, OfAChatAreStreamedSideBySide) {
  const std::string body = ask(server, "/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"n":2,"stream":true})");
  for (const char* index : {"0", "1"})
    EXPECT_NE(body.find(std::string(R"("index":)") + index + R"(,"delta":{},"logprobs":null,"finish_reason":"length")"), std::string::npos)
        << body;
}

TEST_F(Choices, TheBestAreThoseWithTheHighestMeanLogProbability) {
  server.on_loop([this] {
    server.engine().script = [](const GenerationRequest& request) {
      EXPECT_EQ(request.sampling.top_logprobs, 0);
      std::vector<TokenEvent> events = events_of(std::string(1, static_cast<char>('a' + request.sampling.choice)));
      std::get<Token>(events.front()).logprob = request.sampling.choice == 2 ? -1.0F : -2.0F;
      return events;
    };
  });
  EXPECT_EQ(ask(server, "/v1/completions", R"({"prompt":[1],"n":2,"best_of":4})"),
            R"({"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[)"
            R"({"index":0,"text":"c","logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":99},)"
            R"({"index":1,"text":"a","logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":97}],)"
            R"("usage":{"prompt_tokens":1,"completion_tokens":4,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST_F(Choices, AnEchoedPromptComesFirstWithItsLogProbabilities) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":"ab","echo":true,"logprobs":1,"max_tokens":1})");
  EXPECT_NE(body.find(R"("text":"abH","logprobs":{"tokens":["","a","b","H"],"token_logprobs":[null,-1,-1,-1],)"
                      R"("top_logprobs":[null,{"z":-0.5,"a":-1},{"z":-0.5,"b":-1},{"H":-1}],"text_offset":[0,0,1,2]})"),
            std::string::npos)
      << body;
}

class NamedEndCodec final : public FakeCodec {
 public:
  std::string token_bytes(TokenId token) const override { return token == kEos ? "<eos>" : FakeCodec::token_bytes(token); }
};

TEST_F(Choices, OffsetsInAnEchoCountTheControlTokensThatItSpells) {
  static const NamedEndCodec codec;  // the server lives longer than this body
  server.on_loop([&] { server.model().codec = &codec; });
  const std::string fields = R"(,"echo":true,"logprobs":0,"max_tokens":1})";
  EXPECT_NE(ask(server, "/v1/completions", R"({"prompt":"a<eos>b")" + fields).find(R"("text_offset":[0,0,1,6,7])"), std::string::npos);
  EXPECT_NE(ask(server, "/v1/completions", R"({"prompt":[97,257,98])" + fields).find(R"("text_offset":[0,1,1,2])"), std::string::npos);
}

TEST_F(Choices, AnEchoWithoutTokensIsThePromptScored) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":[97,98],"echo":true,"logprobs":0,"max_tokens":0})");
  EXPECT_NE(body.find(R"("text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-1],"top_logprobs":[null,{"b":-1}],)"
                      R"("text_offset":[0,1]},"finish_reason":"length")"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("completion_tokens":0)"), std::string::npos);
}

TEST_F(Choices, NoTokensAreAnEmptyAnswer) {
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    const std::string body = ask(server, path, R"({"prompt":"a","messages":[{"role":"user","content":"a"}],"max_tokens":0})");
    EXPECT_NE(body.find(R"("finish_reason":"length")"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("completion_tokens":0)"), std::string::npos) << body;
  }
}

TEST_F(Choices, AStreamedEchoIsTheFirstChunk) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":["ab","c"],"echo":true,"logprobs":0,"max_tokens":1,"stream":true})");
  const std::size_t first = body.find(R"("index":0,"text":"ab","logprobs":{"tokens":["","a","b"])");
  EXPECT_NE(first, std::string::npos) << body;
  EXPECT_GT(
      body.find(R"("index":0,"text":"H","logprobs":{"tokens":["H"],"token_logprobs":[-1],"top_logprobs":[{"H":-1}],"text_offset":[2]})"),
      first)
      << body;
  EXPECT_NE(body.find(R"("index":1,"text":"c","logprobs":)"), std::string::npos) << body;
}

TEST_F(Choices, PromptLogprobsHaveVllmsShape) {
  const std::string scores =
      R"("prompt_logprobs":[null,{"98":{"logprob":-1,"rank":2,"decoded_token":"b"},"122":{"logprob":-0.5,"rank":1,"decoded_token":"z"}}])";
  const std::string completion = ask(server, "/v1/completions", R"({"prompt":[97,98],"prompt_logprobs":2})");
  EXPECT_NE(completion.find(R"("finish_reason":"length","stop_reason":null,"matched_stop":null,)" + scores + "}]"), std::string::npos)
      << completion;
  const std::string chat = ask(server, "/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"prompt_logprobs":0})");
  EXPECT_NE(chat.find(R"("prompt_logprobs":[null,{"115":{"logprob":-1,"rank":2,"decoded_token":"s"}})"), std::string::npos) << chat;
}

TEST_F(Choices, APromptIsScoredOnceForAllItsChoices) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":["ab","c"],"n":2,"prompt_logprobs":0})");
  server.on_loop([this] {
    std::vector<std::int32_t> wishes;
    for (const GenerationRequest& request : server.engine().submitted) wishes.push_back(request.prompt_logprobs);
    EXPECT_EQ(wishes, (std::vector<std::int32_t>{0, -1, 0, -1}));
  });
  std::size_t reports = 0;
  for (std::size_t at = body.find("\"prompt_logprobs\":[null"); at != std::string::npos;
       at = body.find("\"prompt_logprobs\":[null", at + 1))
    ++reports;
  EXPECT_EQ(reports, 4U) << body;
}

TEST_F(Choices, AGapIsFilledBetweenPrefixAndSuffix) {
  ask(server, "/v1/completions", R"({"prompt":"ab","suffix":"c"})");
  server.on_loop([this] { EXPECT_EQ(server.engine().submitted[0].prompt, (std::vector<TokenId>{kBos, 1, 'a', 'b', 2, 'c', 3})); });
}

TEST_F(Choices, StopStringsMayStayAndWaitForTheLeastTokens) {
  server.on_loop([this] { server.engine().script = [](const GenerationRequest&) { return events_of("a.b.c."); }; });
  const auto text = [this](const std::string& fields) {
    const std::string body = ask(server, "/v1/completions", R"({"prompt":"x","stop":".",)" + fields + "}");
    const std::size_t begin = body.find("\"text\":\"") + 8;
    return body.substr(begin, body.find('"', begin) - begin);
  };
  EXPECT_EQ(text(R"("seed":1)"), "a");
  EXPECT_EQ(text(R"("include_stop_str_in_output":true)"), "a.");
  EXPECT_EQ(text(R"("min_tokens":2)"), "a");
  EXPECT_EQ(text(R"("min_tokens":3)"), "a.b");
  EXPECT_EQ(text(R"("min_tokens":3,"include_stop_str_in_output":true)"), "a.b.");
}

TEST_F(Choices, UsageCanBeToldAllAlong) {
  const std::string body = ask(server, "/v1/completions",
                               R"({"prompt":[1],"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true}})");
  EXPECT_NE(body.find(R"("text":"H","logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":1,)"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("text":"i","logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":2,)"),
            std::string::npos)
      << body;
}

TEST_F(Choices, TimingsHaveLlamaServersNames) {
  for (const char* stream : {"false", "true"}) {
    const std::string body =
        ask(server, "/v1/completions", std::string(R"({"prompt":[1],"timings_per_token":true,"stream":)") + stream + "}");
    for (const char* name : {"queue_ms", "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_n",
                             "predicted_ms", "predicted_per_token_ms", "predicted_per_second"})
      EXPECT_NE(body.find(std::string("\"") + name + "\":"), std::string::npos) << name << " in " << body;
  }
}

TEST_F(Choices, TimingsTellTheCachedPromptFromTheFirstTokenOn) {
  server.on_loop([this] { server.engine().cached_tokens = 1; });
  for (const char* n : {"1", "2"}) {
    const std::string body =
        ask(server, "/v1/completions", std::string(R"({"prompt":[1,2,3],"timings_per_token":true,"stream":true,"n":)") + n + "}");
    EXPECT_NE(body.find(R"("cache_n":1,"prompt_n":2,)"), std::string::npos) << body;
    EXPECT_EQ(body.find(R"("cache_n":0)"), std::string::npos) << body;
    EXPECT_EQ(body.find(R"("cache_n":2)"), std::string::npos) << body;
  }
}

TEST_F(Choices, TimingsCountTheQueueApart) {
  server.on_loop([this] { server.engine().queue_ms = 1e9; });  // cut to what has passed
  const std::string body = ask(server, "/v1/completions", R"({"prompt":[1],"timings_per_token":true})");
  EXPECT_NE(body.find(R"("prompt_ms":0.000)"), std::string::npos) << body;
  EXPECT_EQ(body.find(R"("queue_ms":0.000)"), std::string::npos) << body;
}

TEST_F(Choices, TimingsAreToldInEveryDialect) {
  for (const char* tail : {R"("timings":true,"stream":false})", R"("timings":true,"stream":true})", R"("timings_per_token":true})"}) {
    const std::string response = ask(server, "/v1/responses", std::string(R"({"input":"a",)") + tail);
    EXPECT_NE(response.find(R"("timings":{"queue_ms":)"), std::string::npos) << response;
    const std::string message =
        ask(server, "/v1/messages", std::string(R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],)") + tail);
    EXPECT_NE(message.find(R"("timings":{"queue_ms":)"), std::string::npos) << message;
  }
}

TEST_F(Choices, TheTierIsToldAndThePriorityReachesTheEngine) {
  const std::string body = ask(server, "/v1/completions", R"({"prompt":"a","service_tier":"priority"})");
  EXPECT_NE(body.find(R"("service_tier":"priority")"), std::string::npos) << body;
  server.on_loop([this] { EXPECT_EQ(server.engine().submitted[0].priority, -50); });
}

TEST_F(Choices, TheFingerprintIsTold) {
  server.on_loop([this] { server.model().fingerprint = "fp_1"; });
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}],"stream":)";
  for (const char* stream : {"false}", "true}"}) {
    for (const auto& [path, body] :
         {std::pair{"/v1/completions", std::string(R"({"prompt":"a","stream":)")}, std::pair{"/v1/chat/completions", chat},
          std::pair{"/v1/responses", std::string(R"({"input":"a","stream":)")},
          std::pair{"/v1/messages", R"({"max_tokens":5,)" + chat.substr(1)}, std::pair{"/api/chat", chat},
          std::pair{"/api/generate", std::string(R"({"prompt":"a","stream":)")},
          std::pair{"/completion", std::string(R"({"prompt":"a","stream":)")}}) {
      const std::string answer = ask(server, path, body + stream);
      EXPECT_NE(answer.find(R"("model":"fake-model","system_fingerprint":"fp_1")"), std::string::npos) << path << answer;
    }
  }
}

TEST_F(Choices, AConstraintIsCompiledForTheEngine) {
  const FakeCompiler compiler;
  server.on_loop([&] { server.model().constraints = &compiler; });
  ask(server, "/v1/completions", R"({"prompt":"a","guided_regex":"x","n":2})");
  server.on_loop([this] {
    ASSERT_EQ(server.engine().submitted.size(), 2U);
    EXPECT_NE(server.engine().submitted[0].constraint, nullptr);
    EXPECT_EQ(server.engine().submitted[0].constraint, server.engine().submitted[1].constraint);
  });
  const Reply refused = server.ask(post("/v1/completions", R"({"prompt":"a","guided_json":false})"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"guided_json")"), std::string::npos) << refused.body;
}

}  // namespace
}  // namespace braid::test
