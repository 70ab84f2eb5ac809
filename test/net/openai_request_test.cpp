// Every parameter: what is taken, and which path an error names.
#include <gtest/gtest.h>
#include <net/openai/request.h>

#include <string>
#include <string_view>

#include "fake_codec.h"

namespace braid::test {
namespace {

const FakeCodec kCodec;
const ServedModel kModel = {"fake-model", 0, 1000, "fake", 42, nullptr, &kCodec};

// `fields` as further members of a request that is right.
Result<net::GenerationCall> completion(const std::string& fields) {
  std::string body = R"({"prompt":"a")" + (fields.empty() ? "" : "," + fields) + "}";
  return net::openai::parse_completion(body, kModel);
}

Result<net::GenerationCall> chat(const std::string& fields) {
  std::string body = R"({"messages":[{"role":"user","content":"a"}])" + (fields.empty() ? "" : "," + fields) + "}";
  return net::openai::parse_chat(body, kModel);
}

Result<net::GenerationCall> prompt(const std::string& value) {
  std::string body = R"({"prompt":)" + value + "}";
  return net::openai::parse_completion(body, kModel);
}

Result<net::GenerationCall> messages(const std::string& value) {
  std::string body = R"({"messages":)" + value + "}";
  return net::openai::parse_chat(body, kModel);
}

std::string param_of(const Result<net::GenerationCall>& call) { return call ? "accepted" : call.error().param; }

struct Case {
  std::string fields;
  std::string param;  // of the error, or "accepted"
};

TEST(OpenAiParameters, AreCheckedByTypeAndRange) {
  const Case cases[] = {
      {R"("temperature":0)", "accepted"},
      {R"("temperature":2)", "accepted"},
      {R"("temperature":2.01)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":"1")", "temperature"},
      {R"("temperature":null)", "accepted"},
      {R"("top_p":1)", "accepted"},
      {R"("top_p":0)", "top_p"},
      {R"("top_p":1.5)", "top_p"},
      {R"("min_p":0.5)", "accepted"},
      {R"("min_p":-0.5)", "min_p"},
      {R"("top_k":0)", "accepted"},
      {R"("top_k":-1)", "accepted"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("max_tokens":1)", "accepted"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":1.0)", "max_tokens"},
      {R"("max_tokens":true)", "max_tokens"},
      {R"("max_tokens":4,"min_tokens":4)", "accepted"},
      {R"("max_tokens":4,"min_tokens":5)", "min_tokens"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("seed":-9223372036854775808)", "accepted"},
      {R"("seed":9223372036854775807)", "accepted"},
      {R"("seed":9223372036854775808)", "seed"},
      {R"("seed":"x")", "seed"},
      {R"("stop":null)", "accepted"},
      {R"("stop":"x")", "accepted"},
      {R"("stop":[])", "accepted"},
      {R"("stop":"")", "stop"},
      {R"("stop":["x",""])", "stop[1]"},
      {R"("stop":["x",1])", "stop[1]"},
      {R"("stop":1)", "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16"])", "accepted"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "stop"},
      {R"("stop_token_ids":[0,258])", "accepted"},
      {R"("stop_token_ids":[0,259])", "stop_token_ids[1]"},
      {R"("stop_token_ids":[-1])", "stop_token_ids[0]"},
      {R"("stop_token_ids":3)", "stop_token_ids"},
      {R"("cache_salt":"tenant")", "accepted"},
      {R"("cache_salt":3)", "cache_salt"},
      {R"("stream":true)", "accepted"},
      {R"("stream":1)", "stream"},
      {R"("stream":true,"stream_options":{"include_usage":true})", "accepted"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("stream":true,"stream_options":{"continuous_usage_stats":true})", "stream_options.continuous_usage_stats"},
      {R"("stream":true,"stream_options":true)", "stream_options"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("ignore_eos":true)", "accepted"},
      {R"("ignore_eos":"yes")", "ignore_eos"},
      {R"("return_token_ids":true)", "accepted"},
      {R"("return_token_ids":0)", "return_token_ids"},
      {R"("model":"fake-model")", "accepted"},
      {R"("model":"")", "accepted"},
      {R"("model":"default")", "accepted"},
      {R"("model":"gpt-4o")", "model"},
      {R"("model":4)", "model"},
  };
  for (const Case& expected : cases) {
    EXPECT_EQ(param_of(completion(expected.fields)), expected.param) << expected.fields;
    EXPECT_EQ(param_of(chat(expected.fields)), expected.param) << expected.fields;
  }
}

TEST(OpenAiParameters, ThatAreNotServedAreRefusedUnlessTheyAskForNothing) {
  const Case cases[] = {
      {R"("n":1)", "accepted"},
      {R"("n":2)", "n"},
      {R"("n":"1")", "n"},
      {R"("best_of":2)", "best_of"},
      {R"("presence_penalty":0.0)", "accepted"},
      {R"("presence_penalty":0.5)", "presence_penalty"},
      {R"("frequency_penalty":-1)", "frequency_penalty"},
      {R"("logit_bias":{})", "accepted"},
      {R"("logit_bias":{"50256":-100})", "logit_bias"},
      {R"("echo":false)", "accepted"},
      {R"("echo":true)", "echo"},
      {R"("suffix":"x")", "suffix"},
      {R"("tools":[])", "accepted"},
      {R"("tools":[{"type":"function"}])", "tools"},
      {R"("tool_choice":"auto")", "accepted"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("functions":[{}])", "functions"},
      {R"("response_format":{"type":"text"})", "accepted"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":"text")", "response_format"},
      {R"("modalities":["text"])", "accepted"},
      {R"("modalities":["audio"])", "modalities"},
      {R"("reasoning_effort":"high")", "reasoning_effort"},
      {R"("repetition_penalty":1.1)", "repetition_penalty"},
      {R"("guided_json":{"type":"object"})", "guided_json"},
      {R"("user":"u","metadata":{"a":"b"},"store":true,"service_tier":"auto","parallel_tool_calls":false,"prediction":{})",
       "accepted"},
      {R"("somebody_elses_field":[1,{"x":2}])", "accepted"},
  };
  for (const Case& expected : cases) {
    EXPECT_EQ(param_of(completion(expected.fields)), expected.param) << expected.fields;
    EXPECT_EQ(param_of(chat(expected.fields)), expected.param) << expected.fields;
  }
}

TEST(OpenAiParameters, LogprobsHaveTwoForms) {
  EXPECT_EQ(completion(R"("logprobs":0)")->sampling.top_logprobs, 0);
  EXPECT_EQ(completion(R"("logprobs":20)")->sampling.top_logprobs, 20);
  EXPECT_EQ(param_of(completion(R"("logprobs":21)")), "logprobs");
  EXPECT_EQ(param_of(completion(R"("logprobs":true)")), "logprobs");
  EXPECT_EQ(chat(R"("logprobs":true)")->sampling.top_logprobs, 0);
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":5)")->sampling.top_logprobs, 5);
  EXPECT_EQ(chat(R"("logprobs":false)")->sampling.top_logprobs, -1);
  EXPECT_EQ(param_of(chat(R"("logprobs":1)")), "logprobs");
  EXPECT_EQ(param_of(chat(R"("top_logprobs":5)")), "top_logprobs");
  EXPECT_EQ(param_of(chat(R"("logprobs":true,"top_logprobs":21)")), "top_logprobs");
}

TEST(OpenAiPrompt, TakesTextTokensAndListsOfEither) {
  const auto count = [](const std::string& value) { return std::get<0>(prompt(value).value().prompt).size(); };
  EXPECT_EQ(count(R"("text")"), 1U);
  EXPECT_EQ(count(R"(["a","b"])"), 2U);
  EXPECT_EQ(count(R"([1,2,3])"), 1U);
  EXPECT_EQ(count(R"([[1,2],[3]])"), 2U);
  EXPECT_EQ(count(R"(["a",[3]])"), 2U);
}

TEST(OpenAiPrompt, ErrorsNameThePath) {
  EXPECT_EQ(param_of(prompt("null")), "prompt");
  EXPECT_EQ(param_of(prompt("1")), "prompt");
  EXPECT_EQ(param_of(prompt("[]")), "prompt");
  EXPECT_EQ(param_of(prompt(R"("")")), "prompt");
  EXPECT_EQ(param_of(prompt(R"(["a",""])")), "prompt[1]");
  EXPECT_EQ(param_of(prompt("[[]]")), "prompt[0]");
  EXPECT_EQ(param_of(prompt(R"([1,"a"])")), "prompt[1]");
  EXPECT_EQ(param_of(prompt("[1,2,259]")), "prompt[2]");
  EXPECT_EQ(param_of(prompt("[[1],[2,-3]]")), "prompt[1][1]");
  EXPECT_EQ(param_of(prompt(R"(["a",{}])")), "prompt[1]");
}

TEST(OpenAiMessages, ErrorsNameThePath) {
  const Case cases[] = {
      {"null", "messages"},
      {"{}", "messages"},
      {"[]", "messages"},
      {"[1]", "messages[0]"},
      {R"([{"content":"a"}])", "messages[0].role"},
      {R"([{"role":1,"content":"a"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":3}])", "messages[1].content"},
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}}]}])", "messages[0].content[1]"},
      {R"([{"role":"user","content":[{"text":"a"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text","text":1}]}])", "messages[0].content[0].text"},
      {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":1}}]}])", "messages[0].tool_calls[0].function.name"},
      {R"([{"role":"assistant","content":null}])", "accepted"},
  };
  for (const Case& expected : cases) EXPECT_EQ(param_of(messages(expected.fields)), expected.param) << expected.fields;
}

TEST(OpenAiMessages, AreBroughtIntoTheFormOfTemplates) {
  const auto call = messages(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
                             R"({"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"x\":1}"}}]},)"
                             R"({"role":"tool","tool_call_id":"1","content":"42"}])");
  const auto& list = *std::get<ChatPrompt>(call.value().prompt).messages.get_if<ValueList>();
  EXPECT_EQ(*list[0].find("content"), Value("a\nb"));
  EXPECT_EQ(*list[1].find("content"), Value(""));
  const Value& function = *(*list[1].find("tool_calls")->get_if<ValueList>())[0].find("function");
  EXPECT_EQ(*function.find("arguments")->find("x"), Value(1));
  EXPECT_EQ(*list[2].find("tool_call_id"), Value("1"));
}

TEST(OpenAiBody, MustBeAJsonObject) {
  for (std::string body :
       {"", "{", "[]", "1", "{\"prompt\":\"\xff\"}", "{\"prompt\":\"a\"} x", R"({"prompt":"a","temperature":1e999})"}) {
    const auto call = net::openai::parse_completion(body, kModel);
    ASSERT_FALSE(call) << body;
    EXPECT_EQ(call.error().code, ErrorCode::kInvalidArgument);
  }
  std::string deep = R"({"prompt":"a","x":)" + std::string(200, '[') + std::string(200, ']') + "}";
  EXPECT_NE(net::openai::parse_completion(deep, kModel).error().message.find("deeper than 128"), std::string::npos);
}

}  // namespace
}  // namespace braid::test
