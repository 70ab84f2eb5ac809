// Whole answers, errors and log-probabilities.
#include "net/test_server.h"

#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <new>

namespace braid::test {
namespace {

TEST(Answer, ChatIsExact) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/chat/completions", R"({"model":"default","messages":[{"role":"user","content":"hello"}]})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(
      normalized(reply.body),
      R"({"id":"chatcmpl-ID","object":"chat.completion","created":0,"model":"fake-model","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":105}],)"
      R"("usage":{"prompt_tokens":21,"completion_tokens":2,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(Answer, CompletionOfSeveralPromptsIsExact) {
  TestServer server;
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":[[65],[66,67]],"return_token_ids":true})"));
  EXPECT_EQ(
      normalized(reply.body),
      R"({"id":"cmpl-ID","object":"text_completion","created":0,"model":"fake-model","choices":[)"
      R"({"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":105,"token_ids":[72,105],"prompt_token_ids":[65]},)"
      R"({"index":1,"text":"Hi","logprobs":null,"finish_reason":"stop","stop_reason":null,"matched_stop":105,"token_ids":[72,105],"prompt_token_ids":[66,67]}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(Answer, AStopStringCutsTheText) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) { return events_of("one STOP two"); };
    server.engine().cached_tokens = 1;
  });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","stop":"STOP"})"));
  EXPECT_NE(reply.body.find(R"("text":"one ","logprobs":null,"finish_reason":"stop")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("cached_tokens":1)"), std::string::npos);
  server.on_loop([&] {
    EXPECT_EQ(server.engine().completed, 1U);
    EXPECT_EQ(server.engine().cancelled, 0U);
  });
}

TEST(Answer, AStopTokenIsNoText) {
  TestServer server;
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("one."); }; });
  const std::string body = R"({"prompt":"a","stop_token_ids":[46],"return_token_ids":true)";
  const Reply without = server.ask(post("/v1/completions", body + "}"));
  EXPECT_NE(without.body.find(
                R"("text":"one","logprobs":null,"finish_reason":"stop","stop_reason":46,"matched_stop":46,"token_ids":[111,110,101,46])"),
            std::string::npos)
      << without.body;
  const Reply with = server.ask(post("/v1/completions", body + R"(,"include_stop_str_in_output":true})"));
  EXPECT_NE(with.body.find(R"("text":"one.")"), std::string::npos) << with.body;
}

TEST(Answer, StringsGetABosAndTokenIdsDoNot) {
  TestServer server;
  server.ask(post("/v1/completions", R"({"prompt":"a<eos>"})"));
  server.ask(post("/v1/completions", R"({"prompt":[97]})"));
  server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"));
  server.on_loop([&] {
    EXPECT_EQ(server.engine().submitted[0].prompt, (std::vector<TokenId>{kBos, 'a', kEos}));
    EXPECT_EQ(server.engine().submitted[1].prompt, (std::vector<TokenId>{'a'}));
    EXPECT_EQ(server.engine().submitted[2].prompt.front(), 'u');
  });
}

TEST(Answer, LongPromptsGoThroughTheWorker) {
  TestServer server;
  server.on_loop([&] { server.model().context_length = 100'000; });
  const std::string text(50'000, 'a');
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":")" + text + R"("})")).status, 200);
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted[0].prompt.size(), text.size() + 1); });
}

TEST(Answer, LimitsFollowTheEndpointAndTheContext) {
  TestServer server;
  server.ask(post("/v1/completions", R"({"prompt":[1]})"));
  server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"));
  server.ask(post("/v1/completions", R"({"prompt":[1],"max_tokens":99999999999})"));
  server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5,"max_completion_tokens":7})"));
  server.ask(post("/v1/completions", R"({"prompt":[1],"max_completion_tokens":9})"));
  server.ask(post("/v1/completions", R"({"prompt":[1],"max_completion_tokens":9,"max_tokens":5})"));
  server.on_loop([&] {
    const auto& requests = server.engine().submitted;
    EXPECT_EQ(requests[0].stop.max_tokens, 16);
    EXPECT_EQ(requests[1].stop.max_tokens, 1000 - 17);
    EXPECT_EQ(requests[2].stop.max_tokens, 999);
    EXPECT_EQ(requests[3].stop.max_tokens, 7);
    EXPECT_EQ(requests[4].stop.max_tokens, 9);
    EXPECT_EQ(requests[5].stop.max_tokens, 9);
  });
}

TEST(Answer, SeedsAreKeptAndDrawnWhenAbsent) {
  TestServer server;
  server.ask(post("/v1/completions", R"({"prompt":["a","b"],"seed":-3})"));
  server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  server.on_loop([&] {
    const auto& requests = server.engine().submitted;
    EXPECT_EQ(requests[0].sampling.seed, static_cast<std::uint64_t>(-3));
    EXPECT_EQ(requests[1].sampling.seed, static_cast<std::uint64_t>(-3));
    EXPECT_EQ(requests[1].sampling.choice, 1U);
    EXPECT_NE(requests[2].sampling.seed, requests[3].sampling.seed);
  });
}

std::vector<TokenEvent> scored(const GenerationRequest&) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  return {Token{'H', -0.5F, {{{'H', -0.5F}, {0xC3, -1.25F}}}}, Token{0xC3, -0.25F, {{{'i', kNever}}}}, Token{0xA9, -2.0F, {}}, Finish{}};
}

TEST(Logprobs, CompletionForm) {
  TestServer server;
  server.on_loop([&] { server.engine().script = scored; });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","logprobs":2})"));
  EXPECT_NE(reply.body.find(R"("text":"Hé","logprobs":{"tokens":["H","bytes:\\xc3","bytes:\\xa9"],"token_logprobs":[-0.5,-0.25,-2],)"
                            R"("top_logprobs":[{"H":-0.5,"bytes:\\xc3":-1.25},{"i":-9999,"bytes:\\xc3":-0.25},{"bytes:\\xa9":-2}],)"
                            R"("text_offset":[0,1,2]})"),
            std::string::npos)
      << reply.body;
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted[0].sampling.top_logprobs, 2); });
}

TEST(Logprobs, ControlTokensTakeNoRoomInTheText) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      return std::vector<TokenEvent>{Token{'H', -1, {}}, Token{kEos, -1, {}}, Token{'i', -1, {}}, Finish{}};
    };
  });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","logprobs":0})"));
  EXPECT_NE(reply.body.find(R"("text_offset":[0,1,1])"), std::string::npos) << reply.body;
}

TEST(Logprobs, ChatForm) {
  TestServer server;
  server.on_loop([&] { server.engine().script = scored; });
  const Reply reply =
      server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":2})"));
  EXPECT_NE(reply.body.find(R"("logprobs":{"content":[{"token":"H","logprob":-0.5,"bytes":[72],"top_logprobs":[)"
                            R"({"token":"H","logprob":-0.5,"bytes":[72]},{"token":"�","logprob":-1.25,"bytes":[195]}]},)"
                            R"({"token":"�","logprob":-0.25,"bytes":[195],"top_logprobs":[{"token":"i","logprob":-9999,"bytes":[105]}]},)"
                            R"({"token":"�","logprob":-2,"bytes":[169],"top_logprobs":[]}],"refusal":null})"),
            std::string::npos)
      << reply.body;
}

TEST(Logprobs, AStreamLosesNoneToAHeldCharacter) {
  TestServer server;
  server.on_loop([&] { server.engine().script = scored; });
  const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a","logprobs":0,"stream":true})"));
  EXPECT_NE(reply.body.find(R"("text":"é","logprobs":{"tokens":["bytes:\\xc3","bytes:\\xa9"],"token_logprobs":[-0.25,-2],)"),
            std::string::npos)
      << reply.body;
}

class FailingCodec final : public FakeCodec {
 public:
  std::unique_ptr<StreamDecoder> new_decoder() const override { return std::make_unique<Decoder>(); }

 private:
  class Decoder final : public StreamDecoder {
   public:
    void append(TokenId, std::string&) override { throw std::bad_alloc(); }
    void finish(std::string&) override {}
  };
};

TEST(Errors, AnExceptionInAnAnswerIsTold) {
  const FailingCodec codec;
  TestServer server;
  server.on_loop([&] { server.model().codec = &codec; });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a"})")).status, 500);
  const Reply stream = server.ask(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  EXPECT_NE(stream.body.find(R"("code":"internal_error")"), std::string::npos) << stream.body;
}

// Fails when the second token is written.
class UnprintableCodec final : public FakeCodec {
 public:
  std::string token_bytes(TokenId token) const override {
    if (token == 'i') throw std::bad_alloc();
    return FakeCodec::token_bytes(token);
  }
};

TEST(Errors, AnExceptionWhileAnAnswerIsWrittenIsToldAndLeavesNoHalfEvent) {
  const UnprintableCodec codec;
  TestServer server;
  server.on_loop([&] { server.model().codec = &codec; });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a","logprobs":0})")).status, 500);
  const Reply completion = server.ask(post("/v1/completions", R"({"prompt":"a","logprobs":0,"stream":true})"));
  const Reply chat =
      server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"logprobs":true,"stream":true})"));
  for (const std::string& body : {completion.body, chat.body}) {
    EXPECT_NE(body.find(R"(":"H")"), std::string::npos) << body;
    EXPECT_EQ(body.find(R"(":"i")"), std::string::npos) << body;
    EXPECT_TRUE(body.ends_with("\"code\":\"internal_error\"}}\n\n")) << body;
    for (std::size_t at = body.find("data: ", 1); at != std::string::npos; at = body.find("data: ", at + 1))
      EXPECT_EQ(body.substr(at - 2, 2), "\n\n") << "half an event is before " << at << " of " << body;
  }
}

// The marker of calls is a control token, as in Mistral's vocabularies.
class MarkerCodec final : public FakeCodec {
 public:
  static constexpr TokenId kMarker = 258;
  static constexpr std::string_view kText = "[TOOL_CALLS]";

  MarkerCodec() { chat_template = "tools [TOOL_CALLS] [ARGS]"; }

  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override {
    if (options.parse_special && text == kText) return std::vector<TokenId>{kMarker};
    return FakeCodec::encode(text, options);
  }
  std::string token_bytes(TokenId token) const override { return token == kMarker ? std::string(kText) : FakeCodec::token_bytes(token); }
};

TEST(Answer, MarkersThatAreControlTokensAreSeen) {
  const MarkerCodec codec;
  TestServer server;
  server.on_loop([&] {
    server.model().codec = &codec;
    server.engine().script = [](const GenerationRequest&) {
      std::vector<TokenEvent> events = events_of("f[ARGS]{}");
      events.insert(events.begin(), Token{MarkerCodec::kMarker, 0.0F, {}});
      return events;
    };
  });
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  const std::string body = R"({"messages":[{"role":"user","content":"a"}])";
  EXPECT_NE(server.ask(post("/v1/chat/completions", body + tools + "}")).body.find(R"("function":{"name":"f","arguments":"{}"})"),
            std::string::npos);
  EXPECT_NE(server.ask(post("/v1/chat/completions", body + "}")).body.find(R"("content":"f[ARGS]{}")"), std::string::npos);
}

struct ErrorCase {
  Error error;
  int status;
  std::string_view code;
};

TEST(Errors, TheEnginesRefusalsHaveTheirStatus) {
  TestServer server;
  const ErrorCase cases[] = {{{ErrorCode::kOverloaded, "full", ""}, 429, R"("code":"overloaded")"},
                             {{ErrorCode::kDraining, "bye", ""}, 503, R"("code":"shutting_down")"},
                             {{ErrorCode::kContextLength, "long", "prompt"}, 400, R"("code":"context_length_exceeded")"},
                             {{ErrorCode::kInternal, "bug", ""}, 500, R"("code":"internal_error")"}};
  for (const ErrorCase& expected : cases) {
    server.on_loop([&] { server.engine().refusal = expected.error; });
    for (const std::string_view body : {R"({"prompt":"a"})", R"({"prompt":"a","stream":true})", R"({"prompt":["a","b"]})"}) {
      const Reply reply = server.ask(post("/v1/completions", body));
      EXPECT_EQ(reply.status, expected.status);
      EXPECT_NE(reply.body.find(expected.code), std::string::npos) << reply.body;
      EXPECT_EQ(reply.headers.contains("retry-after"), expected.status == 429 || expected.status == 503);
    }
  }
}

TEST(Errors, APromptThatIsTooLongIsSaidInTheWordsThatClientsLookFor) {
  TestServer server;  // a token a byte, a context of 1000
  const std::string text(1500, 'a');
  const std::string message = R"([{"role":"user","content":")" + text + R"("}])";
  const std::string openai = R"("message":"This model's maximum context length is 1000 tokens. However, your prompt has )";
  const std::pair<std::string, std::string> requests[] = {
      {"/v1/completions", R"({"prompt":")" + text + R"("})"},
      {"/v1/chat/completions", R"({"messages":)" + message + "}"},
      {"/v1/responses", R"({"input":")" + text + R"("})"},
  };
  for (const auto& [path, body] : requests) {
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_NE(reply.body.find(openai), std::string::npos) << reply.body;
    EXPECT_NE(reply.body.find(R"("code":"context_length_exceeded")"), std::string::npos) << reply.body;
  }
  const Reply exact = server.ask(post("/v1/completions", R"({"prompt":")" + std::string(999, 'a') + R"("})"));  // and its first token
  EXPECT_NE(exact.body.find("your prompt has 1000 tokens, and the answer needs at least one. Please reduce"), std::string::npos)
      << exact.body;
  const Reply anthropic = server.ask(post("/v1/messages", R"({"max_tokens":5,"messages":)" + message + "}"));
  EXPECT_EQ(anthropic.status, 400);
  EXPECT_EQ(
      normalized(anthropic.body),
      R"({"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 1516 tokens > 999 maximum"},"request_id":"req-ID"})");
}

TEST(Errors, WithoutAModelGenerationSaysWhy) {
  TestServer server;
  server.on_loop([&] { server.status() = {ServiceState::kNoModel, "", {}}; });
  const Reply none = server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  EXPECT_EQ(none.status, 503);
  EXPECT_NE(none.body.find("without a model"), std::string::npos);
  EXPECT_NE(none.body.find(R"("code":"model_not_loaded")"), std::string::npos);
  server.on_loop([&] { server.status() = {ServiceState::kLoading, "", {}}; });
  EXPECT_NE(server.ask(post("/v1/completions", R"({"prompt":"a"})")).body.find("still being loaded"), std::string::npos);
}

TEST(Errors, AFailureOfTheEngineIsAStatusWhenNothingWasSent) {
  TestServer server;
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kCancelled;
      finish.error = Error{ErrorCode::kDraining, "the server is shutting down", ""};
      return std::vector<TokenEvent>{Token{'x', 0.0F, {}}, finish};
    };
  });
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a"})")).status, 503);
}

TEST(Errors, ATemplatesFailureIsA400) {
  TestServer server;
  const Reply reply =
      server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"fail":true}})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("line 3"), std::string::npos);
}

}  // namespace
}  // namespace braid::test
