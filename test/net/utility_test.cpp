// Routes that answer about texts, running answers and the server itself.
#include "net/generation/timings.h"
#include "net/test_server.h"
#include "net/weights/sources.h"
#include "support/folder.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Tokenize, TakesContentPromptsAndConversations) {
  TestServer server;
  const auto ask = [&server](std::string_view body) { return server.ask(post("/tokenize", body)).body; };
  EXPECT_EQ(ask(R"({"content":"ab<eos>"})"), R"({"tokens":[97,98,257],"count":3,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"content":"a","add_special":true})"), R"({"tokens":[256,97],"count":2,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"prompt":"a"})"), R"({"tokens":[256,97],"count":2,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"prompt":"<eos>","add_special_tokens":false,"parse_special":false})"),
            R"({"tokens":[60,101,111,115,62],"count":5,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"messages":[{"role":"u","content":"a"}],"add_generation_prompt":false})"),
            R"({"tokens":[117,58,97,59],"count":4,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"content":"aé","with_pieces":true})"),
            R"({"tokens":[{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}],"count":3,"max_model_len":1000})");
  EXPECT_EQ(ask(R"({"content":""})"), R"({"tokens":[],"count":0,"max_model_len":1000})");
}

TEST(Tokenize, DetokenizeGivesTheTextBack) {
  TestServer server;
  EXPECT_EQ(server.ask(post("/v1/detokenize", R"({"tokens":[97,195,169,257]})")).body, R"({"content":"aé<eos>"})");
  EXPECT_EQ(server.ask(post("/detokenize", R"({"tokens":[195]})")).body, "{\"content\":\"\xEF\xBF\xBD\"}");
}

TEST(Tokenize, TheTemplateIsApplied) {
  TestServer server;
  EXPECT_EQ(server.ask(post("/apply-template", R"({"messages":[{"role":"user","content":"a"}]})")).body,
            R"({"prompt":"user:a;assistant:"})");
}

// As for a generation: a template that knows no tools is told of them in words.
TEST(Tokenize, ToolsAreWrittenForATemplateWithoutThem) {
  FakeCodec codec;
  codec.chat_template = "plain";
  TestServer server;
  server.on_loop([&] { server.model().codec = &codec; });
  const std::string body = R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}]})";
  const std::string prompt = server.ask(post("/apply-template", body)).body;
  EXPECT_EQ(prompt.find(R"({"prompt":"system:You may call these functions:)"), 0U) << prompt;
  EXPECT_NE(server.ask(post("/tokenize", body)).body.find(R"({"tokens":[115,121,115,116,101,109,)"), std::string::npos);
}

TEST(Tokenize, AnthropicsConversationsAreCounted) {
  TestServer server;
  const auto ask = [&server](std::string_view body) { return server.ask(post("/v1/messages/count_tokens", body)); };
  EXPECT_EQ(ask(R"({"messages":[{"role":"user","content":"a"}]})").body, R"({"input_tokens":17})");
  EXPECT_EQ(ask("{}").status, 400);
  EXPECT_EQ(ask("{}").body.find(R"({"type":"error")"), 0U);
}

TEST(Tokenize, ErrorsNameTheField) {
  TestServer server;
  const auto param = [&server](std::string_view path, std::string_view body) {
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 400) << body;
    const std::size_t at = reply.body.find("\"param\":") + 8;
    return reply.body.substr(at, reply.body.find(',', at) - at);
  };
  EXPECT_EQ(param("/tokenize", "{}"), "\"content\"");
  EXPECT_EQ(server.ask(post("/tokenize", R"({"content":null,"messages":null,"prompt":"a"})")).status, 200);
  EXPECT_EQ(param("/tokenize", R"({"content":null,"prompt":null})"), "\"content\"");
  EXPECT_NE(server.ask(post("/tokenize", R"({"content":"a","x":1e999})")).body.find("too large"), std::string::npos);
  EXPECT_EQ(param("/tokenize", R"({"content":1})"), "\"content\"");
  EXPECT_EQ(param("/tokenize", R"({"prompt":[]})"), "\"prompt\"");
  EXPECT_EQ(param("/tokenize", R"({"content":"a","add_special":1})"), "\"add_special\"");
  EXPECT_EQ(param("/tokenize", R"({"messages":3})"), "\"messages\"");
  EXPECT_EQ(param("/tokenize", "[]"), "null");
  EXPECT_EQ(param("/detokenize", "{}"), "\"tokens\"");
  EXPECT_EQ(param("/detokenize", R"({"tokens":[1,999]})"), "\"tokens[1]\"");
  EXPECT_EQ(param("/apply-template", "{}"), "\"messages\"");
}

TEST(Tokenize, LongTextsAreReadOnTheWorker) {
  net::ServerOptions options = test_options();
  options.max_inline_body_bytes = 4;
  TestServer server(options);
  EXPECT_EQ(server.ask(post("/tokenize", R"({"content":"ab"})")).body, R"({"tokens":[97,98],"count":2,"max_model_len":1000})");
  EXPECT_EQ(server.ask(post("/tokenize", R"({"content":1})")).status, 400);
}

// Scores each token but the first with the log of 1/2 and samples nothing.
std::vector<TokenEvent> halves(const GenerationRequest& request) {
  PromptTokens prompt;
  for (const TokenId id : request.prompt) {
    PromptToken token;
    token.id = id;
    if (!prompt.tokens.empty()) token.logprob = std::log(0.5F);
    prompt.tokens.push_back(std::move(token));
  }
  Finish finish;
  finish.reason = FinishReason::kLength;
  std::vector<TokenEvent> events;
  events.push_back(std::move(prompt));
  events.push_back(std::move(finish));
  return events;
}

TEST(Perplexity, IsThatOfTheTokensButTheFirst) {
  TestServer server;
  server.on_loop([&] { server.engine().script = halves; });
  const std::string body = server.ask(post("/v1/perplexity", R"({"input":"abc"})")).body;
  EXPECT_EQ(body.find(R"({"object":"perplexity","model":"fake-model","tokens":3,"nll_mean":0.693147)"), 0U) << body;
  EXPECT_NE(body.find(R"("perplexity":2)"), std::string::npos) << body;
  server.on_loop([&] {
    EXPECT_EQ(server.engine().submitted[0].stop.max_tokens, 0);
    EXPECT_EQ(server.engine().submitted[0].prompt_logprobs, 0);
  });
  EXPECT_NE(server.ask(post("/perplexity", R"({"input":[97,98]})")).body.find(R"("tokens":1)"), std::string::npos);
  server.ask(post("/perplexity", R"({"input":"abc","cache_salt":"mine"})"));
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted.back().cache_salt, "mine"); });
  for (const char* wrong : {"{}", R"({"input":""})", R"({"input":[1,999]})", R"({"input":3})"})
    EXPECT_EQ(server.ask(post("/perplexity", wrong)).status, 400) << wrong;
}

TEST(Abort, EndsAllChoicesOfAnAnswer) {
  TestServer server;
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"n":2})", "Connection: close\r\n", "1.0"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.size() == 2; }));
  server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  const std::string chunk = client.read_until("\"text\":\"x\"");
  const std::size_t begin = chunk.find("\"id\":\"") + 6;
  const std::string id = chunk.substr(begin, chunk.find('"', begin) - begin);
  const Reply reply = server.ask(post("/v1/abort", R"({"id":")" + id + "\"}"));
  EXPECT_EQ(reply.body, R"({"id":")" + id + R"(","object":"abort","aborted":true})");
  EXPECT_NE(client.read_to_close().find(R"("message":"the request was aborted")"), std::string::npos);
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
  EXPECT_EQ(server.ask(post("/v1/abort", R"({"id":")" + id + "\"}")).status, 404);
}

TEST(Abort, OfNothingIsA404) {
  TestServer server;
  EXPECT_EQ(server.ask(post("/abort", R"({"id":"cmpl-0"})")).status, 404);
  EXPECT_EQ(server.ask(post("/abort", R"({"id":7})")).status, 400);
  EXPECT_EQ(server.ask(post("/abort", "{}")).status, 400);
}

TEST(Slots, ShowWhatRunsAndWhatIsFree) {
  TestServer server;
  EXPECT_EQ(server.ask(get("/slots")).body, "[]");
  server.on_loop([&] {
    server.engine().script = nullptr;
    server.engine().most_running = 2;
  });
  RawClient client = server.connect();
  client.send(post("/v1/completions",
                   R"({"prompt":[1,2],"max_tokens":9,"priority":3,"temperature":0.5,"seed":7,"samplers":["top_k","temperature"]})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  const std::string body = normalized(server.ask(get("/slots")).body);
  EXPECT_THAT(body, StartsWith(R"([{"id":0,"n_ctx":1000,"speculative":false,"is_processing":true,"id_task":)"));
  EXPECT_THAT(body, HasSubstr(R"("next_token":{"has_next_token":true,"n_remain":9,"n_decoded":0},"params":{"n_predict":9,"max_tokens":9,)"
                              R"("seed":7,"temperature":0.5,)"));
  EXPECT_THAT(body, HasSubstr(R"("samplers":["penalties","dry","top_k","temperature"],)"));
  EXPECT_THAT(body, EndsWith(R"("request":"cmpl-ID","phase":"decode","priority":3,"prompt_tokens":2,"cached_tokens":0,)"
                             R"("generated_tokens":0,"max_tokens":9},{"id":1,"n_ctx":1000,"speculative":false,"is_processing":false}])"));
  EXPECT_EQ(server.ask(get("/slots?fail_on_no_slot=1")).status, 200);
  server.on_loop([&] { server.engine().most_running = 1; });
  EXPECT_EQ(server.ask(get("/slots?fail_on_no_slot=1")).status, 503);
  EXPECT_EQ(server.ask(get("/slots?fail_on_no_slot=0")).status, 200);
}

TEST(Props, AreThoseOfTheModelInLlamaServersWords) {
  TestServer server;
  server.on_loop([&] {
    server.engine().most_running = 5;
    server.model().defaults.temperature = 0.25F;
  });
  const std::string body = server.ask(get("/props")).body;
  EXPECT_THAT(body, StartsWith(R"({"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":1000,"speculative":false,)"
                               R"("is_processing":false,"params":{"n_predict":-1,"max_tokens":-1,"seed":4294967295,"temperature":0.25,)"));
  EXPECT_THAT(body, HasSubstr(R"("samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"])"));
  EXPECT_THAT(body, HasSubstr(R"("total_slots":5,"model_alias":"fake-model","model_path":"fake-model","chat_template":"tools",)"));
  EXPECT_THAT(body, HasSubstr(R"("bos_token":"","eos_token":"<eos>","build_info":"braid )"));
  server.on_loop([&] { server.status() = {ServiceState::kNoModel, "", {}}; });
  for (const char* path : {"/props", "/tokenizer_info"}) EXPECT_EQ(server.ask(get(path)).status, 503) << path;
  EXPECT_EQ(server.ask(get("/slots")).body, "[]");
  EXPECT_EQ(server.ask(post("/tokenize", R"({"content":"a"})")).status, 503);
}

TEST(TokenizerInfo, TellsWhatTheCodecDoes) {
  TestServer server;
  EXPECT_EQ(server.ask(get("/tokenizer_info")).body,
            R"({"tokenizer_class":"braid","model_max_length":1000,"vocab_size":259,"bos_token":"","eos_token":"<eos>",)"
            R"("add_bos_token":true,"add_eos_token":false,"chat_template":"tools"})");
  EXPECT_EQ(server.ask(get("/tokenizer_info?model=other")).status, 404);
}

// The first token belongs to the prompt's time: whatever is divided by the time after it does not count it.
TEST(Timings, DoNotCountTheFirstTokenAsGeneration) {
  const auto timings_of = [](std::int32_t tokens) {
    Usage usage;
    usage.prompt_tokens = 10;
    usage.cached_tokens = 6;
    usage.prompt_ms = 8.0;
    usage.completion_tokens = tokens;
    usage.generation_ms = tokens > 1 ? 40.0 : 0.0;
    std::string text;
    net::append_timings(text, usage);
    return text;
  };
  EXPECT_THAT(timings_of(5), HasSubstr(R"("prompt_n":4,"prompt_ms":8.000,"prompt_per_token_ms":2.000,"prompt_per_second":500.000)"));
  EXPECT_THAT(timings_of(5),
              HasSubstr(R"("predicted_n":5,"predicted_ms":40.000,"predicted_per_token_ms":10.000,"predicted_per_second":100.000)"));
  EXPECT_THAT(timings_of(1),
              HasSubstr(R"("predicted_n":1,"predicted_ms":0.000,"predicted_per_token_ms":0.000,"predicted_per_second":0.000)"));
}

TEST(Utility, WhatCountsTokensTellsWhichToolsItLeavesOut) {
  TestServer server;
  const std::string_view tools = R"("tools":[{"type":"web_search"},{"type":"mcp"},{"type":"web_search"}])";
  for (const auto& [route, input] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/v1/messages/count_tokens", R"("messages":[{"role":"user","content":"a"}])"},
           {"/v1/responses/input_tokens", R"("input":"a")"},
           {"/tokenize", R"("messages":[{"role":"user","content":"a"}])"},
           {"/apply-template", R"("messages":[{"role":"user","content":"a"}])"}}) {
    const Reply reply = server.ask(post(route, fmt::format("{{{},{}}}", input, tools)));
    ASSERT_EQ(reply.status, 200) << route << reply.body;
    ASSERT_TRUE(reply.headers.contains("x-braid-tools-ignored")) << route;
    EXPECT_EQ(reply.headers.at("x-braid-tools-ignored"), "mcp, web_search") << route;
    EXPECT_FALSE(server.ask(post(route, fmt::format("{{{}}}", input))).headers.contains("x-braid-tools-ignored")) << route;
  }
}

// Whatever is read of a folder lies in one of those that the server was started with, also where it is a link.
TEST(AdapterFolders, HoldWhatTheirFilesLinkTo) {
  const Folder folder, others;
  const std::vector<std::string> paths = {folder.path()};
  const auto asked = [&](const std::string& path) {
    const Result<std::string> found = net::weights::path_in({.paths = paths, .option = "--adapter-dir"}, path, "path");
    return found ? *found : found.error().message;
  };
  std::filesystem::create_directory(folder / "tuned");
  EXPECT_EQ(asked("tuned"), std::filesystem::canonical(folder / "tuned").string());
  std::ofstream(folder / "blob") << "x";
  std::ofstream(others / "secret") << "x";
  EXPECT_EQ(asked("blob"), std::filesystem::canonical(folder / "blob").string());
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors", "model.safetensors"}) {
    const std::string link = folder / (std::string("tuned/") + file);
    std::filesystem::create_symlink("../blob", link);
    EXPECT_EQ(asked("tuned"), std::filesystem::canonical(folder / "tuned").string()) << "as caches of the hub have it";
    std::filesystem::remove(link);
    std::filesystem::create_symlink(others / "secret", link);
    EXPECT_EQ(asked("tuned"), fmt::format("'tuned/{}' lies in no folder of --adapter-dir", file));
    std::filesystem::remove(link);
    for (const char* nowhere : {file, "../nothing"}) {
      std::filesystem::create_symlink(nowhere, link);
      EXPECT_THAT(asked("tuned"), HasSubstr("lies in no folder")) << "it leads to " << nowhere;
      std::filesystem::remove(link);
    }
  }
}

}  // namespace
}  // namespace braid::test
