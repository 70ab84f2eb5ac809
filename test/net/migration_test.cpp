// What vLLM's, SGLang's and llama-server's clients ask for and look at, over HTTP with a fake engine.
#include "braid/model_name.h"
#include "net/fake_constraints.h"
#include "net/test_server.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace braid::test {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kCompletion = "/v1/completions";

class Migration : public testing::Test {
 protected:
  Migration() {
    server_.on_loop([this] { server_.model().constraints = &compiler_; });
  }

  void say(std::vector<TokenEvent> events) {
    server_.on_loop([&] { server_.engine().script = [events = std::move(events)](const GenerationRequest&) { return events; }; });
  }
  void say(std::string_view text, FinishReason reason = FinishReason::kStop) { say(events_of(text, reason)); }

  std::string ask(std::string_view path, const std::string& body) { return server_.ask(post(path, body)).body; }
  std::string complete(const std::string& fields) { return ask(kCompletion, R"({"prompt":"ab",)" + fields + "}"); }
  std::string chat(const std::string& fields) { return ask(kChat, R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}"); }

  GenerationRequest last() {
    GenerationRequest request;
    server_.on_loop([&] { request = server_.engine().submitted.back(); });
    return request;
  }

  // The tokens that may come next after `accepted`, of as many as the model foretells.
  std::vector<TokenId> allowed_after(std::vector<TokenId> accepted, TokenId foretold = kVocab) {
    std::vector<std::uint32_t> mask((static_cast<std::size_t>(foretold) + 31) / 32);
    last().constraint->start(accepted)->fill_mask(mask);
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < foretold; ++id)
      if ((mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
    return ids;
  }

  FakeCompiler compiler_;
  TestServer server_;
};

void expect_in(const std::string& body, std::string_view part) { EXPECT_NE(body.find(part), std::string::npos) << part << "\n" << body; }
void expect_not_in(const std::string& body, std::string_view part) { EXPECT_EQ(body.find(part), std::string::npos) << body; }

TEST_F(Migration, AllowedTokensAreTheOnlyOnes) {
  complete(R"("allowed_token_ids":[5,257,64])");
  EXPECT_EQ(allowed_after({}), (std::vector<TokenId>{5, 64, 257}));
  EXPECT_EQ(allowed_after({5, 64}), (std::vector<TokenId>{5, 64, 257}));
  EXPECT_EQ(allowed_after({}, kVocab + 200), (std::vector<TokenId>{5, 64, 257})) << "rows of the output that stand for no token";
}

TEST_F(Migration, BadWordsNeverComeToTheirEnd) {
  complete(R"("bad_words":["abc","x"])");
  const auto bans = [&](std::vector<TokenId> accepted, TokenId token) {
    const std::vector<TokenId> allowed = allowed_after(std::move(accepted));
    return std::find(allowed.begin(), allowed.end(), token) == allowed.end();
  };
  EXPECT_TRUE(bans({}, 'x'));
  EXPECT_FALSE(bans({}, 'c'));
  EXPECT_FALSE(bans({'a', 'z', 'b'}, 'c'));
  EXPECT_TRUE(bans({'q', 'a', 'b'}, 'c'));
  EXPECT_TRUE(bans({' ', 'a', 'b'}, 'c'));
  EXPECT_FALSE(bans({'a', 'b'}, 'd'));
  EXPECT_EQ(allowed_after({'a', 'b'}).size(), kVocab - 2U);  // and the mask ends with the vocabulary
}

TEST_F(Migration, APromptIsCutToItsLastTokens) {
  ask(kCompletion, R"({"prompt":"abcdef","truncate_prompt_tokens":3})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{'d', 'e', 'f'}));
  ask(kCompletion, R"({"prompt":"abcdef","truncate_prompt_tokens":3,"echo":true})");
  expect_in(ask(kCompletion, R"({"prompt":"abcdef","truncate_prompt_tokens":3,"echo":true})"), R"("text":"defHi")");
  ask(kCompletion, R"({"prompt":")" + std::string(5000, 'x') + R"(","truncate_prompt_tokens":-1,"max_tokens":100})");
  EXPECT_EQ(last().prompt.size(), 900U);
  ask(kChat, R"({"messages":[{"role":"user","content":"abc"}],"truncate_prompt_tokens":2})");
  EXPECT_EQ(last().prompt.size(), 2U);
}

TEST_F(Migration, SpecialTokensAreAddedAsAsked) {
  complete(R"("add_special_tokens":false)");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{'a', 'b'}));
  complete(R"("add_special_tokens":true)");
  EXPECT_EQ(last().prompt.front(), kBos);
  chat(R"("add_special_tokens":true)");
  EXPECT_EQ(last().prompt.front(), kBos);
  chat(R"("temperature":1)");
  EXPECT_NE(last().prompt.front(), kBos);
}

TEST_F(Migration, SpecialTokensMayBeText) {
  const auto spoken = [](FinishReason reason) {
    std::vector<TokenEvent> events = events_of("ab", reason);
    events.insert(events.begin() + 1, Token{kEos, 0.0F, {}});
    events.insert(events.begin() + 1, Token{kEos, 0.0F, {}});
    events.insert(events.end() - 1, Token{kEos, 0.0F, {}});
    return events;
  };
  say(spoken(FinishReason::kStop));
  expect_in(complete(R"("temperature":1)"), R"("text":"ab")");
  expect_in(complete(R"("skip_special_tokens":true)"), R"("text":"ab")");
  expect_in(complete(R"("skip_special_tokens":false)"), R"("text":"a<eos><eos>b")");
  expect_in(complete(R"("skip_special_tokens":false,"spaces_between_special_tokens":true)"), R"("text":"a<eos> <eos>b")");
  expect_in(complete(R"("skip_special_tokens":false,"include_stop_str_in_output":true)"), R"("text":"a<eos><eos>b<eos>")");
  say(spoken(FinishReason::kLength));
  expect_in(complete(R"("skip_special_tokens":false)"), R"("text":"a<eos><eos>b<eos>")");
}

TEST_F(Migration, TokensComeInAndGoOut) {
  const std::string completion = ask(kCompletion, R"({"prompt_token_ids":[65,66],"return_token_ids":true})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{65, 66}));
  expect_in(completion, R"("token_ids":[72,105],"prompt_token_ids":[65,66])");
  const std::string whole = ask(kChat, R"({"prompt_token_ids":[65,66,67],"return_token_ids":true})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{65, 66, 67}));
  expect_in(whole, R"("prompt_token_ids":[65,66,67])");
  const std::string stream = ask(kChat, R"({"prompt_token_ids":[65,66,67],"return_token_ids":true,"stream":true})");
  const std::size_t first = stream.find(R"("prompt_token_ids":[65,66,67])");
  EXPECT_LT(first, stream.find(R"("content":"H")"));
  EXPECT_EQ(stream.find("prompt_token_ids", first + 2), std::string::npos);
  expect_in(ask(kCompletion, R"({"prompt":"a","prompt_token_ids":[1]})"), "exclude each other");
}

TEST_F(Migration, TokensMayBeCalledByTheirIds) {
  say({Token{72, -0.5F, {{{72, -0.5F}, {73, -1.0F}}}}, Finish{}});
  expect_in(complete(R"("logprobs":2,"return_tokens_as_token_ids":true)"),
            R"("tokens":["token_id:72"],"token_logprobs":[-0.5],"top_logprobs":[{"token_id:72":-0.5,"token_id:73":-1}])");
  expect_in(chat(R"("logprobs":true,"top_logprobs":1,"return_tokens_as_token_ids":true)"), R"({"token":"token_id:72","logprob":-0.5)");
}

TEST_F(Migration, AnAnswerSaysWhatEndedIt) {
  say("one STOP");
  expect_in(chat(R"("stop":["STOP"])"), R"("finish_reason":"stop","stop_reason":"STOP","matched_stop":"STOP")");
  say("one.");
  expect_in(chat(R"("stop_token_ids":[46])"), R"("finish_reason":"stop","stop_reason":46,"matched_stop":46)");
  expect_in(chat(R"("temperature":1)"), R"("finish_reason":"stop","stop_reason":null,"matched_stop":46)");
  expect_in(chat(R"("stream":true)"), R"("finish_reason":"stop","stop_reason":null,"matched_stop":46)");
  say("one", FinishReason::kLength);
  expect_in(chat(R"("temperature":1)"), R"("finish_reason":"length","stop_reason":null,"matched_stop":null)");
}

TEST_F(Migration, AChatEchoesTheMessageThatItGoesOnWith) {
  const std::string body = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Well, "}],)"
                           R"("continue_final_message":true,"echo":true)";
  expect_in(ask(kChat, body + "}"), R"("content":"Well, Hi")");
  const std::string stream = ask(kChat, body + R"(,"stream":true})");
  EXPECT_LT(stream.find(R"({"content":"Well, "})"), stream.find(R"({"content":"H"})"));
  expect_in(chat(R"("echo":true)"), R"("content":"Hi")");
}

TEST_F(Migration, AnAnswerEndsWithTheFirstMatchOfAPattern) {
  say("ab12xy");
  for (const char* stream : {"false", "true"}) {
    const std::string body = complete(R"("stop_regex":"12","stream":)" + std::string(stream));
    expect_in(body, R"("stop_reason":"12","matched_stop":"12")");
    expect_not_in(body, "\"x\"");
    expect_not_in(body, "12x");
  }
  expect_in(complete(R"("stop_regex":["zz","12"])"), R"("text":"ab12")");
  expect_in(complete(R"("stop_regex":"zz")"), R"("text":"ab12xy")");
  expect_in(complete(R"("stop_regex":"12","stop":"b1")"), R"("text":"a",)");
  expect_in(complete(R"("stop_regex":"(")"), R"("param":"stop_regex")");
}

TEST_F(Migration, LlamaServersCountsAndScoresAreOnesOwn) {
  complete(R"("n_predict":7)");
  EXPECT_EQ(last().stop.max_tokens, 7);
  complete(R"("n_predict":-1)");
  EXPECT_EQ(last().stop.max_tokens, 1000 - 3);  // of the context, what "ab" and a BOS leave
  complete(R"("temperature":1)");
  EXPECT_EQ(last().stop.max_tokens, 16);
  complete(R"("n_probs":3)");
  EXPECT_EQ(last().sampling.top_logprobs, 3);
  chat(R"("n_probs":2)");
  EXPECT_EQ(last().sampling.top_logprobs, 2);
  chat(R"("n_probs":0)");
  EXPECT_EQ(last().sampling.top_logprobs, -1);
}

TEST_F(Migration, WithoutTheCacheNothingIsShared) {
  complete(R"("cache_prompt":true,"cache_salt":"s")");
  EXPECT_EQ(last().cache_salt, "s");
  complete(R"("cache_prompt":false,"cache_salt":"s")");
  const std::string first = last().cache_salt;
  complete(R"("cache_prompt":false,"cache_salt":"s")");
  EXPECT_NE(first, last().cache_salt);
  EXPECT_NE(first, "s");
}

TEST_F(Migration, AStreamTellsThePromptsProgress) {
  server_.on_loop([&] { server_.engine().cached_tokens = 2; });
  for (const auto& [path, body] :
       {std::pair(kChat, R"({"messages":[{"role":"user","content":"a"}],)"), std::pair(kCompletion, R"({"prompt":[1,2,3],)")}) {
    const std::string stream = ask(path, std::string(body) + R"("stream":true,"return_progress":true})");
    const std::size_t begin = stream.find(R"("processed":0)");
    const std::size_t end = stream.find(R"("prompt_progress":{"total":)", begin);
    EXPECT_LT(begin, end);
    EXPECT_LT(end, stream.find("\"H\"")) << stream;
    EXPECT_EQ(stream.find("prompt_progress", end + 2), std::string::npos);
    expect_in(stream.substr(end, 80), R"("cache":2)");
    expect_not_in(ask(path, std::string(body) + R"("stream":true})"), "prompt_progress");
  }
}

TEST_F(Migration, TimingsAreInTheLastChunkOrInEach) {
  const auto count = [](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = text.find("\"timings\""); at != std::string::npos; at = text.find("\"timings\"", at + 1)) ++found;
    return found;
  };
  const std::string last = chat(R"("stream":true,"timings":true)");
  EXPECT_EQ(count(last), 1U);
  EXPECT_GT(last.find("\"timings\""), last.find(R"("finish_reason":"stop")"));
  EXPECT_EQ(count(chat(R"("stream":true,"timings_per_token":true)")), 4U);  // the role, two tokens, the end
  EXPECT_EQ(count(chat(R"("stream":true)")), 0U);
}

TEST_F(Migration, ReasoningHasTwoNamesAndMayBeHidden) {
  server_.on_loop([&] {
    static const FakeCodec thinking = [] {
      FakeCodec codec;
      codec.chat_template = "tools </think>";
      return codec;
    }();
    server_.model().codec = &thinking;
  });
  say("<think>hm</think>ok");
  expect_in(chat(R"("temperature":1)"), R"("content":"ok","reasoning_content":"hm","reasoning":"hm")");
  expect_in(chat(R"("stream":true)"), R"("delta":{"reasoning_content":"h","reasoning":"h"})");
  for (const char* stream : {"false", "true"}) {
    const std::string hidden = chat(R"("include_reasoning":false,"stream":)" + std::string(stream));
    expect_not_in(hidden, R"("reasoning")");
    expect_not_in(hidden, R"("reasoning_content")");
    expect_in(hidden, "o");
  }
}

TEST_F(Migration, LlamaServersCompletionHasItsShape) {
  say("ab.", FinishReason::kLength);
  const std::string whole = ask("/completion", R"({"prompt":[1,2],"return_tokens":true})");
  EXPECT_TRUE(whole.starts_with(
      R"({"index":0,"id_slot":0,"content":"ab.","tokens":[97,98,46],"stop":true,"tokens_predicted":3,"tokens_evaluated":2,)"
      R"("model":"fake-model","stop_type":"limit","stopping_word":"","truncated":false,"tokens_cached":0,)"
      R"("has_new_line":false,"generation_settings":{"n_predict":-1,)"))
      << whole;
  expect_in(whole, R"("prompt":"\u0001\u0002","timings":{"queue_ms":)");
  EXPECT_EQ(last().stop.max_tokens, 998);  // to the end of the context
  EXPECT_EQ(last().sampling.top_k, 40);
  EXPECT_EQ(last().sampling.temperature, 0.8F);
  ask("/completion", R"({"prompt":"a","n_predict":3,"temperature":0,"top_k":0})");
  EXPECT_EQ(last().stop.max_tokens, 3);
  EXPECT_EQ(last().sampling.temperature, 0.0F);
  EXPECT_EQ(last().sampling.top_k, 0);
  expect_in(ask("/completion", R"({"prompt":"a","stop":"b"})"), R"("stop_type":"word","stopping_word":"b")");
  EXPECT_TRUE(
      ask("/completion", R"({"prompt":["a","bc"]})").starts_with(R"([{"index":0,"id_slot":0,"content":"ab.","tokens":[],"stop":true)"));
  const std::string stream = ask("/completion", R"({"prompt":[1,2],"stream":true})");
  EXPECT_TRUE(
      stream.starts_with("data: {\"index\":0,\"id_slot\":0,\"content\":\"a\",\"tokens\":[],\"stop\":false,\"tokens_predicted\":1,"
                         "\"tokens_evaluated\":2}\n\n"))
      << stream;
  expect_in(stream, R"("content":"","tokens":[],"stop":true,"tokens_predicted":3,)");
  expect_not_in(stream, "[DONE]");
  expect_in(ask("/completion", R"({"prompt":1.5})"), R"("param":"prompt")");
}

TEST_F(Migration, LlamaServersProbabilitiesNameTheirTokens) {
  say({Token{72, -0.5F, {{{72, -0.5F}, {73, -1.0F}}}}, Finish{}});
  expect_in(ask("/completion", R"({"prompt":[1],"n_probs":2})"),
            R"("completion_probabilities":[{"id":72,"token":"H","bytes":[72],"logprob":-0.5,"top_logprobs":[)"
            R"({"id":72,"token":"H","bytes":[72],"logprob":-0.5},{"id":73,"token":"I","bytes":[73],"logprob":-1}]}])");
}

TEST_F(Migration, LlamaServersGapIsFilledBetweenItsTwoSides) {
  expect_in(ask("/infill", R"({"input_prefix":"a","prompt":"b","input_suffix":"c"})"), R"("content":"Hi")");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{kInfill.begin.value(), kInfill.prefix, 'a', 'b', kInfill.suffix, 'c', kInfill.middle}));
  expect_in(ask("/infill", R"({"input_prefix":"a","input_extra":[{"text":"x"}]})"), R"("param":"input_extra")");
}

TEST_F(Migration, LlamaServersVectorsAreOfLengthOne) {
  say({PooledVector{{3.0F, 4.0F}}, Finish{}});
  const std::string vectors = ask("/embedding", R"({"content":["a","b"]})");
  expect_in(vectors, R"([{"index":0,"embedding":[[0.6)");
  expect_in(vectors, R"({"index":1,"embedding":[[)");
}

TEST_F(Migration, TheLoadIsTheRequestsThatAreAnsweredButForThisOne) {
  EXPECT_EQ(server_.ask(get("/load")).body, R"({"server_load":0})");
  say(std::vector<TokenEvent>());
  RawClient waiting = server_.connect();
  waiting.send(post(kCompletion, R"({"prompt":"a"})"));
  ASSERT_TRUE(server_.eventually([this] { return !server_.engine().submitted.empty(); }));
  EXPECT_EQ(server_.ask(get("/load")).body, R"({"server_load":1})");
}

// What a server that others were written for knows and this one does not serve is refused by its name, never read past.
TEST_F(Migration, NothingThatChangesTheAnswerIsIgnored) {
  const std::pair<std::string_view, const char*> refused[] = {
      {kCompletion, R"("t_max_prompt_ms":5)"},          {kCompletion, R"("adaptive_target":0.5)"},
      {kCompletion, R"("preserved_tokens":["<a>"])"},   {kCompletion, R"("repetition_detection":{"a":1})"},
      {kChat, R"("thinking_forced_open":true)"},        {kChat, R"("reasoning_in_content":true)"},
      {kChat, R"("guided_whitespace_pattern":"x")"},    {"/v1/embeddings", R"("use_activation":false)"},
      {"/v1/embeddings", R"("embed_dtype":"float16")"}, {"/embedding", R"("embd_normalize":2.5)"},
      {"/v1/embeddings", R"("embd_normalize":"l2")"}};
  for (const auto& [path, field] : refused) {
    const Reply reply = server_.ask(
        post(path, std::string(R"({"messages":[{"role":"user","content":"a"}],"prompt":"a","input":"a","content":"a",)") + field + "}"));
    EXPECT_EQ(reply.status, 400) << field;
    const std::string name(std::string_view(field).substr(1, std::string_view(field).find('"', 1) - 1));
    expect_in(reply.body, "'" + name + "'");
  }
}

TEST_F(Migration, SeveralAnswersAreRefusedWhereThereIsOne) {
  for (const auto& [path, body] :
       {std::pair("/v1/responses", R"({"input":"a","n_cmpl":2})"),
        std::pair("/v1/messages", R"({"max_tokens":3,"messages":[{"role":"user","content":"a"}],"n_cmpl":2})")}) {
    const Reply reply = server_.ask(post(path, body));
    EXPECT_EQ(reply.status, 400) << path;
    expect_in(reply.body, "'n_cmpl'");
  }
}

TEST_F(Migration, PromptIdsStandForAnyConversation) {
  for (const auto& [path, fields] : {std::pair("/v1/chat/completions", "\"stream\":false"), std::pair("/v1/messages", "\"max_tokens\":3"),
                                     std::pair("/v1/responses", "\"store\":false")}) {
    const std::string body = std::string("{\"prompt_token_ids\":[65,66,67],") + fields;
    EXPECT_EQ(server_.ask(post(path, body + "}")).status, 200) << path;
    EXPECT_EQ(last().prompt, (std::vector<TokenId>{65, 66, 67})) << path;
    const char* conversation = R"(,"messages":[{"role":"user","content":"a"}]})";
    server_.ask(post(path, body + (path == std::string_view("/v1/responses") ? R"(,"input":"a"})" : conversation)));
    EXPECT_EQ(last().prompt, (std::vector<TokenId>{65, 66, 67})) << path;
    EXPECT_EQ(server_.ask(post(path, std::string("{\"prompt_token_ids\":[],") + fields + conversation)).status, 400) << path;
  }
}

TEST_F(Migration, WhatAnAnswerHasNoPlaceForIsRefused) {
  for (const char* field : {R"("return_token_ids":true)", R"("return_tokens":true)", R"("prompt_logprobs":1)", R"("return_progress":true)",
                            R"("echo":true)", R"("logprobs":true)", R"("n_probs":3)"})
    for (const auto& [path, rest] : {std::pair("/v1/messages", R"("max_tokens":3,"messages":[{"role":"user","content":"a"}])"),
                                     std::pair("/v1/responses", R"("input":"a")")}) {
      const bool tells = path == std::string_view("/v1/responses") && std::string_view(field).find("prob") != std::string_view::npos &&
                         std::string_view(field).find("prompt") == std::string_view::npos;
      EXPECT_EQ(server_.ask(post(path, std::string("{") + rest + "," + field + "}")).status, tells ? 200 : 400) << path << field;
    }
}

TEST_F(Migration, OtherNamesAreServed) {
  expect_in(complete(R"("n_cmpl":2)"), R"("index":1)");
  expect_in(ask("/tokenize", R"({"prompt":"ab","return_token_strs":true})"), R"("token_strs":["","a","b"])");
  complete(R"("logit_bias":[["ab",-1],[97,3],["c",false]])");
  const std::vector<LogitBias> biases = last().sampling.logit_bias;
  ASSERT_EQ(biases.size(), 3U);
  EXPECT_EQ(biases[0].bias, 2.0F);
  EXPECT_EQ(biases[1].token, 98);
  EXPECT_EQ(biases[2].bias, -std::numeric_limits<float>::infinity());
}

TEST_F(Migration, VectorsAreOfThePromptsBeginning) {
  ask("/v1/embeddings", R"({"input":"abcdef","truncate_prompt_tokens":2})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{256, 'a'}));
  ask("/v1/embeddings", R"({"input":"ab","add_special_tokens":false})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{'a', 'b'}));
}

// llama-server's own routes always have their timings, the others where they are asked for them.
TEST_F(Migration, TimingsComeUnaskedWhereLlamaServerHasThem) {
  expect_in(ask("/completion", R"({"prompt":"a"})"), R"("timings":{)");
  expect_in(ask("/completion", R"({"prompt":"a","stream":true})"), R"("timings":{)");
  expect_not_in(complete(R"("max_tokens":1)"), "timings");
}

TEST_F(Migration, AStreamOfACompletionTellsItsProgress) {
  const std::string body = ask("/completion", R"({"prompt":"ab","stream":true,"return_progress":true})");
  expect_in(body, R"("prompt_progress":{"total":3,"cache":0,"processed":0,)");
  expect_in(body, R"("prompt_progress":{"total":3,"cache":0,"processed":3,)");
}

// Of all that is documented nothing is unknown to a server that refuses what it does not know.
TEST_F(Migration, StrictParametersKnowWhatOpenAiAndTheOthersDocument) {
  server_.on_loop([this] { server_.model().defaults.strict_parameters = true; });
  for (const char* field : {R"("prediction":{"type":"content","content":"a"})", R"("prompt_cache_retention":"24h")",
                            R"("n_cache_reuse":64)", R"("speculative.n_max":4)", R"("extra_key":"a")"})
    expect_not_in(chat(field), "is not a parameter");
  expect_not_in(ask("/v1/embeddings", R"({"input":"a","encoding_format":"float"})"), "is not a parameter");
  expect_in(chat(R"("predictoin":{})"), "is not a parameter");
}

TEST(ModelNames, StandForOneAnotherWithoutWhatOneOfThemLacks) {
  const std::pair<const char*, const char*> same[] = {{"demo", "demo"},     {"demo.gguf", "demo"},          {"demo", "demo.gguf"},
                                                      {"org/demo", "demo"}, {"demo", "org/demo"},           {"demo:latest", "demo"},
                                                      {"demo:q8", "demo"},  {"models/x/demo.gguf", "demo"}, {"demo:q8", "demo:q8"},
                                                      {"demo", "demo:q8"},  {"org/demo:q8", "demo"},        {"org/demo.gguf", "demo:q8"}};
  for (const auto& [asked, id] : same) EXPECT_TRUE(may_name(asked, id)) << asked << " " << id;
  const std::pair<const char*, const char*> others[] = {{"demo2", "demo"},    {"demo:q4", "demo:q8"}, {"org/demo", "other/demo"},
                                                        {"demo.bin", "demo"}, {"", "demo"},           {"org/", "demo"},
                                                        {":q8", "demo"},      {"Demo", "demo"}};
  for (const auto& [asked, id] : others) EXPECT_FALSE(may_name(asked, id)) << asked << " " << id;
}

TEST(ModelNames, ADirectoryFindsTheOnlyOneOrAnyWhereThatIsWanted) {
  ServedModel q4;
  q4.id = "demo:q4";
  ServedModel q8;
  q8.id = "demo:q8";
  const ModelDirectory two({&q4, &q8});
  EXPECT_EQ(two.find("demo:q8"), &q8);
  EXPECT_EQ(two.find("org/demo:q8"), &q8);
  EXPECT_EQ(two.find("demo"), nullptr);  // either
  EXPECT_EQ(two.find("gpt-4o"), nullptr);
  EXPECT_EQ(ModelDirectory({&q4, &q8}, true).find("gpt-4o"), &q4);
  EXPECT_EQ(ModelDirectory({}, true).find("gpt-4o"), nullptr);
}

TEST_F(Migration, ACompletionEndsAsLlamaServersDoes) {
  const std::string whole = ask("/completion", R"({"prompt":"ab","n_predict":5,"temperature":0.5,"top_k":7})");
  for (const char* member : {R"("id_slot":0,)", R"("prompt":"ab",)", R"("generation_settings":{"n_predict":5,)", R"("temperature":0.5,)",
                             R"("top_k":7,)", R"("has_new_line":false,)"})
    expect_in(whole, member);
  expect_in(ask("/completion", R"({"prompt":"ab","stream":true})"), R"("generation_settings":{)");
}

TEST_F(Migration, IdsAndTextsInOneListAreOnePrompt) {
  ask("/completion", R"({"prompt":[97,"bc",100,"e"]})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{97, 98, 99, 100, 101}));
  ask("/completion", R"({"prompt":["a",98]})");
  EXPECT_EQ(last().prompt, (std::vector<TokenId>{kBos, 97, 98}));
  expect_in(ask("/completion", R"({"prompt":[[97,"b"],"c"]})"), R"("prompt":"c",)");
}

TEST_F(Migration, VectorsAreAsLongAsTheyAreWanted) {
  say({PooledVector{{3.0F, -4.0F}}, Finish()});
  const auto vector = [this](const char* norm) {
    return ask("/embedding", R"({"content":"a","embd_normalize":)" + std::string(norm) + "}");
  };
  expect_in(vector("-1"), "[[3,-4]]");
  expect_in(vector("0"), "[[24570,-32760]]");
  expect_in(vector("1"), "[[0.42857143,-0.5714286]]");
  expect_in(vector("2"), "[[0.6,-0.8]]");
  const auto openai = [this](const char* fields) { return ask("/v1/embeddings", R"({"input":"a")" + std::string(fields) + "}"); };
  expect_in(openai(R"(,"embd_normalize":-1)"), "[3,-4]");
  expect_in(openai(R"(,"embd_normalize":0)"), "[24570,-32760]");
  expect_in(openai(R"(,"embd_normalize":1)"), "[0.42857143,-0.5714286]");
  expect_in(openai(R"(,"embd_normalize":2)"), "[0.6,-0.8]");
  expect_in(openai(""), "[0.6,-0.8]");
}

}  // namespace
}  // namespace braid::test
