// Every parameter: what is taken, and which path an error names.
#include "net/fake_chat.h"
#include "net/json/parse.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {
namespace {

// `fields` as further members of a request that is right.
Result<net::GenerationCall> completion(const std::string& fields) {
  std::string body = R"({"prompt":"a")" + (fields.empty() ? "" : "," + fields) + "}";
  return read_text(net::openai::read_completion, body, kFakeModel);
}

Result<net::GenerationCall> chat(const std::string& fields) {
  std::string body = R"({"messages":[{"role":"user","content":"a"}])" + (fields.empty() ? "" : "," + fields) + "}";
  return read_text(net::openai::read_chat, body, kFakeModel);
}

Result<net::GenerationCall> prompt(const std::string& value) {
  std::string body = R"({"prompt":)" + value + "}";
  return read_text(net::openai::read_completion, body, kFakeModel);
}

Result<net::GenerationCall> messages(const std::string& value) {
  std::string body = R"({"messages":)" + value + "}";
  return read_text(net::openai::read_chat, body, kFakeModel);
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
      {R"("top_p":0)", "accepted"},
      {R"("top_p":-0.1)", "top_p"},
      {R"("top_p":1.5)", "top_p"},
      {R"("min_p":0.5)", "accepted"},
      {R"("min_p":-0.5)", "min_p"},
      {R"("top_k":0)", "accepted"},
      {R"("top_k":-1)", "accepted"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("max_tokens":1)", "accepted"},
      {R"("max_tokens":0)", "accepted"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":1.0)", "accepted"},
      {R"("max_tokens":1.5)", "max_tokens"},
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
      {R"("stop":"")", "accepted"},
      {R"("stop":["x",""])", "accepted"},
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
      {R"("stream":true,"stream_options":{"continuous_usage_stats":true})", "accepted"},
      {R"("stream":true,"stream_options":{"continuous_usage_stats":2})", "stream_options.continuous_usage_stats"},
      {R"("stream":true,"stream_options":true)", "stream_options"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("ignore_eos":true)", "accepted"},
      {R"("ignore_eos":"yes")", "ignore_eos"},
      {R"("return_token_ids":true)", "accepted"},
      {R"("return_token_ids":0)", "return_token_ids"},
      {R"("model":"fake-model")", "accepted"},
      {R"("model":"")", "accepted"},
      {R"("model":"default")", "accepted"},
      {R"("model":4)", "model"},
  };
  for (const Case& expected : cases) {
    EXPECT_EQ(param_of(completion(expected.fields)), expected.param) << expected.fields;
    EXPECT_EQ(param_of(chat(expected.fields)), expected.param) << expected.fields;
  }
}

TEST(OpenAiParameters, AWholeNumberInAnotherFormIsToldFromOneThatIsNone) {
  const auto says = [](const std::string& fields) { return chat(fields).error().message; };
  for (const char* fields : {R"("seed":18446744073709551615)", R"("seed":1e30)"})
    EXPECT_EQ(says(fields), "'seed' must be an integer of 64 bits with a sign") << fields;
  EXPECT_EQ(chat(R"("seed":16.0)")->sampling.seed, 16U);
  EXPECT_EQ(chat(R"("max_tokens":1.6e1)")->max_tokens, 16);
  EXPECT_EQ(completion(R"("stop_token_ids":[65.0,66])")->stop.stop_token_ids, (std::vector<TokenId>{65, 66}));
  EXPECT_EQ(says(R"("seed":1.5)"), "'seed' must be an integer, not a number");
}

TEST(OpenAiParameters, OfSamplingHaveTheirRanges) {
  struct Range {
    std::string name;
    std::vector<std::string> inside;
    std::vector<std::string> outside;
  };
  const Range ranges[] = {
      {"n", {"1", "128"}, {"0", "129", "1.5", "\"1\""}},
      {"presence_penalty", {"-2", "0.5", "2"}, {"-2.1", "2.1", "\"0\""}},
      {"frequency_penalty", {"-2", "2"}, {"-3", "3"}},
      {"repetition_penalty", {"0.1", "1", "10"}, {"0", "-1", "11", "true"}},
      {"repeat_penalty", {"1.1"}, {"0"}},
      {"repeat_last_n", {"-1", "0", "64"}, {"-2", "0.5"}},
      {"typical_p", {"0.5", "1"}, {"0", "1.1"}},
      {"top_n_sigma", {"-1", "0", "3"}, {"-1.5", "101"}},
      {"xtc_probability", {"0", "1"}, {"-0.1", "1.1"}},
      {"xtc_threshold", {"0", "0.5", "1"}, {"-0.1", "2"}},
      {"dry_multiplier", {"0", "0.8"}, {"-1", "101"}},
      {"dry_base", {"1", "1.75"}, {"0.5", "101"}},
      {"dry_allowed_length", {"0", "2"}, {"-1"}},
      {"dry_penalty_last_n", {"-1", "0"}, {"-2"}},
      {"mirostat", {"0", "1", "2"}, {"-1", "3", "true"}},
      {"mirostat_tau", {"0", "5"}, {"-1", "101"}},
      {"mirostat_eta", {"0", "1"}, {"-1", "2"}},
      {"prompt_logprobs", {"0", "20"}, {"-1", "21", "true"}},
      {"priority", {"-100", "100", "1.0"}, {"-101", "101", "1.5"}},
      {"include_stop_str_in_output", {"true", "false"}, {"1"}},
      {"truncate_prompt_tokens", {"-1", "1", "5000000000"}, {"0", "-2", "1.5"}},
      {"add_special_tokens", {"true", "false"}, {"1"}},
      {"skip_special_tokens", {"true", "false"}, {"0"}},
      {"spaces_between_special_tokens", {"true", "false"}, {"0"}},
      {"return_tokens_as_token_ids", {"true"}, {"0"}},
      {"n_predict", {"-2", "-1", "0", "16"}, {"-3", "\"1\""}},
      {"n_probs", {"0", "20"}, {"-1", "21"}},
      {"return_progress", {"true"}, {"1"}},
      {"cache_prompt", {"true", "false"}, {"1"}},
      {"return_tokens", {"true"}, {"1"}},
      {"regex", {"\"a+\""}, {"1"}},
      {"ebnf", {"\"root ::= \\\"a\\\"\""}, {"1"}},
      {"stop_regex", {"\"a+\"", "[\"a\",\"b\"]", "\"\""}, {"1", "[\"a\",\"b\",\"c\",\"d\",\"e\"]"}},
      {"no_stop_trim", {"true"}, {"1"}},
      {"include_reasoning", {"true", "false"}, {"1"}},
      {"bad_words", {"[]", "[\"a\"]"}, {"\"a\""}},
      {"allowed_token_ids", {"[1,258]"}, {"[]", "1"}},
      // What would change the answer and is not served is refused, unless it asks for nothing.
      {"use_beam_search", {"false"}, {"true"}},
      {"length_penalty", {"1", "1.0"}, {"0.5"}},
      {"early_stopping", {"false"}, {"true"}},
      {"logits_processors", {"[]"}, {"[\"x\"]"}},
      {"prompt_embeds", {"\"\""}, {"\"x\""}},
      {"kv_transfer_params", {"{}"}, {"{\"a\":1}"}},
      {"lora_path", {"\"\""}, {"\"x\""}},
      {"custom_logit_processor", {"\"\""}, {"\"x\""}},
      {"return_hidden_states", {"false"}, {"true"}},
      {"separate_reasoning", {"true"}, {"false"}},
      {"dynatemp_range", {"0", "0.0"}, {"0.5"}},
      {"min_keep", {"0"}, {"2"}},
      {"t_max_predict_ms", {"0", "-1"}, {"100"}},
      {"post_sampling_probs", {"false"}, {"true"}},
      {"grammar_lazy", {"false"}, {"true"}},
      {"image_data", {"[]"}, {"[{}]"}},
      {"lora", {"[]"}, {"[{\"id\":0}]"}},
      {"response_fields", {"[]"}, {"[\"content\"]"}},
      {"reasoning_format", {"\"auto\"", "\"deepseek\""}, {"\"none\""}},
      {"id_slot", {"-1", "3"}, {"\"a\""}},
      {"timings", {"true"}, {"1"}},
      {"timings_per_token", {"true"}, {"1"}},
      {"service_tier", {"\"auto\"", "\"default\"", "\"flex\"", "\"priority\"", "\"scale\""}, {"\"gold\"", "1"}},
      {"user", {"\"u\""}, {"1"}},
      {"store", {"true"}, {"\"yes\""}},
  };
  for (const Range& range : ranges) {
    const auto ask = [&range](const std::string& value) { return "\"" + range.name + "\":" + value; };
    for (const std::string& value : range.inside) {
      EXPECT_EQ(param_of(completion(ask(value))), "accepted") << ask(value);
      EXPECT_EQ(param_of(chat(ask(value))), "accepted") << ask(value);
    }
    for (const std::string& value : range.outside) {
      EXPECT_EQ(param_of(completion(ask(value))), range.name) << ask(value);
      EXPECT_EQ(param_of(chat(ask(value))), range.name) << ask(value);
    }
  }
}

TEST(OpenAiParameters, ReachTheCall) {
  const auto call =
      completion(R"("n":3,"presence_penalty":0.5,"frequency_penalty":-0.5,"repeat_penalty":1.5,"repeat_last_n":9,"typical_p":0.5,)"
                 R"("top_n_sigma":2,"xtc_probability":0.25,"xtc_threshold":0.5,"dry_allowed_length":4,"dry_penalty_last_n":7,"mirostat":2,)"
                 R"("mirostat_tau":4,"mirostat_eta":0.5,"prompt_logprobs":3,"service_tier":"flex","return_token_ids":true,"echo":true)");
  ASSERT_TRUE(call) << call.error().message;
  const SamplingParams& sampling = call->sampling;
  EXPECT_EQ(call->choices, 3);
  EXPECT_EQ(call->candidates, 3);
  EXPECT_EQ(sampling.presence_penalty, 0.5F);
  EXPECT_EQ(sampling.frequency_penalty, -0.5F);
  EXPECT_EQ(sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(sampling.penalty_last_n, 9);
  EXPECT_EQ(sampling.typical_p, 0.5F);
  EXPECT_EQ(sampling.top_n_sigma, 2.0F);
  EXPECT_EQ(sampling.xtc_probability, 0.25F);
  EXPECT_EQ(sampling.xtc_threshold, 0.5F);
  EXPECT_EQ(sampling.dry_allowed_length, 4);
  EXPECT_EQ(sampling.dry_penalty_last_n, 7);
  EXPECT_EQ(sampling.mirostat, 2);
  EXPECT_EQ(sampling.mirostat_tau, 4.0F);
  EXPECT_EQ(sampling.mirostat_eta, 0.5F);
  EXPECT_EQ(call->prompt_logprobs, 3);
  EXPECT_EQ(call->priority, 50);
  EXPECT_TRUE(call->echo);
  EXPECT_EQ(completion(R"("service_tier":"flex","priority":-7)")->priority, -7);
  EXPECT_EQ(completion(R"("priority":-7,"service_tier":"flex")")->priority, -7);
}

TEST(OpenAiParameters, SamplersAreOrderedAndTheOthersAreOff) {
  using Steps = std::vector<SamplerStep>;
  const auto sampling = [](const std::string& fields) { return completion(fields).value().sampling; };
  EXPECT_TRUE(sampling(R"("samplers":[])").steps.empty());
  const std::string penalties = R"("repeat_penalty":1.5,"presence_penalty":1,"dry_multiplier":0.8,"temperature":0.3,)";
  const auto ordered = sampling(penalties + R"("samplers":["penalties","top_k","temperature","top_p"])");
  EXPECT_EQ(ordered.steps, (Steps{SamplerStep::kTopK, SamplerStep::kTemperature, SamplerStep::kTopP}));
  EXPECT_EQ(ordered.repetition_penalty, 1.5F);
  EXPECT_EQ(ordered.dry_multiplier, 0.0F);
  EXPECT_EQ(ordered.temperature, 0.3F);
  const auto letters = sampling(penalties + R"("samplers":"dkypmxs")");
  EXPECT_EQ(letters.steps, (Steps{SamplerStep::kTopK, SamplerStep::kTypicalP, SamplerStep::kTopP, SamplerStep::kMinP, SamplerStep::kXtc,
                                  SamplerStep::kTopNSigma}));
  EXPECT_EQ(letters.repetition_penalty, 1.0F);
  EXPECT_EQ(letters.presence_penalty, 0.0F);
  EXPECT_EQ(letters.dry_multiplier, 0.8F);
  EXPECT_EQ(letters.temperature, 1.0F);
  EXPECT_EQ(param_of(completion(R"("samplers":["top_k","infill"])")), "samplers[1]");
  EXPECT_EQ(param_of(completion(R"("samplers":["top_k","top_k"])")), "samplers[1]");
  EXPECT_EQ(param_of(completion(R"("samplers":["top_k","penalties"])")), "samplers[1]");
  EXPECT_EQ(param_of(completion(R"("samplers":["dry","penalties"])")), "samplers[1]");
  EXPECT_EQ(param_of(completion(R"("samplers":"kz")")), "samplers");
  EXPECT_EQ(param_of(completion(R"("samplers":1)")), "samplers");
}

TEST(OpenAiParameters, TheOperatorsDefaultsHoldWhereARequestSaysNothing) {
  ServedModel model = kFakeModel;
  model.defaults = {.temperature = 0.25F,
                    .top_p = 0.5F,
                    .top_k = 7,
                    .min_p = 0.1F,
                    .repetition_penalty = 1.2F,
                    .seed = 9,
                    .max_tokens = 33,
                    .reasoning = false,
                    .template_kwargs = ValueDict{{"a", 1}, {"enable_thinking", true}}};
  const auto silent = chat_with(R"("user":"x")", model);
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->sampling.temperature, 0.25F);
  EXPECT_EQ(silent->sampling.top_p, 0.5F);
  EXPECT_EQ(silent->sampling.top_k, 7);
  EXPECT_EQ(silent->sampling.min_p, 0.1F);
  EXPECT_EQ(silent->sampling.repetition_penalty, 1.2F);
  EXPECT_TRUE(silent->seeded);
  EXPECT_EQ(silent->sampling.seed, 9U);
  EXPECT_EQ(silent->max_tokens, 33);
  const Value& kwargs = std::get<ChatPrompt>(silent->prompt).kwargs;
  EXPECT_EQ(*kwargs.find("a"), Value(1));
  EXPECT_EQ(*kwargs.find("enable_thinking"), Value(false));  // --reasoning off
  const auto own =
      chat_with(R"("temperature":1,"top_k":0,"seed":1,"max_tokens":5,"reasoning_effort":"high","chat_template_kwargs":{"a":2})", model);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->sampling.temperature, 1.0F);
  EXPECT_EQ(own->sampling.top_k, 0);
  EXPECT_EQ(own->sampling.seed, 1U);
  EXPECT_EQ(own->max_tokens, 5);
  EXPECT_EQ(*std::get<ChatPrompt>(own->prompt).kwargs.find("a"), Value(2));
  EXPECT_EQ(*std::get<ChatPrompt>(own->prompt).kwargs.find("enable_thinking"), Value(true));
  EXPECT_EQ(read_text(net::openai::read_completion, R"({"prompt":"a"})", model)->max_tokens, 33);
}

// --top-p 0, as in a request: the least share, so that the most probable token is left.
TEST(OpenAiParameters, ADefaultShareOfNothingIsTheMostProbableToken) {
  ServedModel model = kFakeModel;
  model.defaults.top_p = 0.0F;
  const auto silent = chat_with(R"("user":"x")", model);
  const auto own = chat_with(R"("top_p":0)");
  ASSERT_TRUE(silent && own);
  EXPECT_GT(silent->sampling.top_p, 0.0F);
  EXPECT_EQ(silent->sampling.top_p, own->sampling.top_p);
  EXPECT_EQ(chat_with(R"("top_p":0.5)", model)->sampling.top_p, 0.5F);
}

TEST(OpenAiParameters, UnknownNamesAreRefusedWhereTheOperatorWantsIt) {
  ServedModel model = kFakeModel;
  model.defaults.strict_parameters = true;
  EXPECT_EQ(param_of(chat_with(R"("temprature":1)", model)), "temprature");
  EXPECT_EQ(param_of(chat_with(R"("temprature":1)")), "accepted");
  EXPECT_EQ(param_of(chat_with(R"("temperature":1,"user":"u","id_slot":1,"rid":"x")", model)), "accepted");
}

TEST(OpenAiParameters, LogitBiasTakesTwoForms) {
  const auto biases = [](const std::string& value) { return completion("\"logit_bias\":" + value); };
  const auto object = biases(R"({"72":5,"65":-100.0})");
  ASSERT_TRUE(object);
  ASSERT_EQ(object->sampling.logit_bias.size(), 2U);
  EXPECT_EQ(object->sampling.logit_bias[0].token, 65);
  EXPECT_EQ(object->sampling.logit_bias[0].bias, -100.0F);
  const auto pairs = biases("[[72,false],[65,1.5]]");
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->sampling.logit_bias[1].bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(param_of(biases("{}")), "accepted");
  EXPECT_EQ(param_of(biases(R"({"259":1})")), "logit_bias.259");
  EXPECT_EQ(param_of(biases(R"({"-1":1})")), "logit_bias.-1");
  EXPECT_EQ(param_of(biases(R"({"a":1})")), "logit_bias.a");
  EXPECT_EQ(param_of(biases(R"({"7x":1})")), "logit_bias.7x");
  EXPECT_EQ(param_of(biases(R"({"7":100.5})")), "logit_bias.7");
  EXPECT_EQ(param_of(biases(R"({"7":"1"})")), "logit_bias.7");
  const auto twice = biases(R"({"7":1,"8":5,"07":2})");
  ASSERT_EQ(twice->sampling.logit_bias.size(), 2U);
  EXPECT_EQ(twice->sampling.logit_bias[0].bias, 3.0F);
  EXPECT_EQ(param_of(biases("[[300,1]]")), "logit_bias[0][0]");
  EXPECT_EQ(param_of(biases("[[3,true]]")), "logit_bias[0][1]");
  EXPECT_EQ(param_of(biases("[[3]]")), "logit_bias[0]");
  EXPECT_EQ(param_of(biases("3")), "logit_bias");
}

TEST(OpenAiParameters, DryBreakersBecomeTokens) {
  using Breakers = std::vector<std::vector<TokenId>>;
  EXPECT_TRUE(completion("\"dry_base\":2")->sampling.dry_sequence_breakers.empty());
  EXPECT_EQ(completion("\"dry_multiplier\":1")->sampling.dry_sequence_breakers, (Breakers{{'\n'}, {':'}, {'"'}, {'*'}}));
  EXPECT_EQ(completion(R"("dry_multiplier":1,"dry_sequence_breakers":["ab"])")->sampling.dry_sequence_breakers, (Breakers{{'a', 'b'}}));
  EXPECT_EQ(param_of(completion(R"("dry_sequence_breakers":["a",""])")), "dry_sequence_breakers[1]");
  EXPECT_EQ(param_of(completion(R"("dry_sequence_breakers":"a")")), "dry_sequence_breakers");
}

TEST(OpenAiParameters, BestOfBelongsToCompletions) {
  const auto call = completion(R"("n":2,"best_of":5)");
  EXPECT_EQ(call->choices, 2);
  EXPECT_EQ(call->candidates, 5);
  EXPECT_EQ(param_of(completion(R"("best_of":0)")), "best_of");
  EXPECT_EQ(param_of(completion(R"("best_of":21)")), "best_of");
  EXPECT_EQ(param_of(completion(R"("n":3,"best_of":2)")), "best_of");
  EXPECT_EQ(param_of(completion(R"("best_of":2,"stream":true)")), "best_of");
  EXPECT_EQ(param_of(completion(R"("n":2,"best_of":2,"stream":true)")), "accepted");
  std::string many = R"({"n":128,"prompt":["1","2","3","4","5","6","7","8","9"]})";
  EXPECT_EQ(param_of(read_text(net::openai::read_completion, many, kFakeModel)), "n");
}

TEST(OpenAiParameters, SuffixNeedsAModelThatFillsGaps) {
  EXPECT_EQ(completion(R"("suffix":"x")")->suffix, "x");
  EXPECT_FALSE(completion(R"("suffix":"")")->suffix);
  EXPECT_EQ(param_of(completion(R"("suffix":"x","echo":true)")), "echo");
  class PlainCodec final : public FakeCodec {
    std::optional<InfillTokens> infill_tokens() const override { return std::nullopt; }
  };
  const PlainCodec codec;
  const ServedModel model = {"fake-model", 0, 1000, "fake", 42, nullptr, &codec, nullptr};
  std::string body = R"({"prompt":"a","suffix":"b"})";
  EXPECT_EQ(param_of(read_text(net::openai::read_completion, body, model)), "suffix");
}

TEST(OpenAiParameters, PromptLogprobsAreNotStreamed) {
  EXPECT_EQ(param_of(completion(R"("prompt_logprobs":1,"stream":true)")), "prompt_logprobs");
}

// Templates ask whether a message has calls, and print the arguments of those as objects.
TEST(OpenAiMessages, SayNothingWhereAClientSaysNull) {
  std::string body =
      R"({"messages":[{"role":"user","content":"a","name":null},{"role":"assistant","content":"b","tool_calls":null},)"
      R"({"role":"assistant","content":"b","tool_calls":[],"refusal":null},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f","arguments":""}},)"
      R"({"function":{"name":"f","arguments":null}}]}]})";
  const auto call = read_text(net::openai::read_chat, body, kFakeModel);
  ASSERT_TRUE(call);
  const Value messages = std::get<ChatPrompt>(call->prompt).messages;
  const auto& list = *messages.get_if<ValueList>();
  EXPECT_EQ(list[0], Value(ValueDict{{"role", "user"}, {"content", "a"}}));
  EXPECT_EQ(list[1], Value(ValueDict{{"role", "assistant"}, {"content", "b"}}));
  EXPECT_EQ(list[2], list[1]);
  EXPECT_EQ(*list[3].find("content"), Value(""));
  for (const Value& tool_call : *list[3].find("tool_calls")->get_if<ValueList>())
    EXPECT_EQ(*tool_call.find("function")->find("arguments"), Value(ValueDict{}));
}

// As gateways pass them on: they reach no template.
TEST(OpenAiMessages, MayMarkWhereTheirPromptIsCached) {
  const std::string mark = R"("cache_control":{"type":"ephemeral"})";
  const auto call = messages(R"([{"role":"system","content":[{"type":"text","text":"s",)" + mark + R"(}]},{"role":"user","content":"a"},)" +
                             R"({"role":"assistant","content":"b",)" + mark + R"(},{"role":"user","content":"c","cache_control":null}])");
  EXPECT_EQ(call.value().marked_turns, (std::vector<std::int32_t>{1, 3}));
  const Value all = std::get<ChatPrompt>(call->prompt).messages;
  EXPECT_EQ((*all.get_if<ValueList>())[2], Value(ValueDict{{"role", "assistant"}, {"content", "b"}}));
  std::string many;
  for (int i = 0; i < 40; ++i) many += (i > 0 ? "," : "") + (R"({"role":"user","content":"a",)" + mark + "}");
  EXPECT_EQ(messages("[" + many + "]").value().marked_turns.size(), 16U);
}

TEST(OpenAiParameters, MetadataIsBounded) {
  EXPECT_EQ(param_of(chat(R"("metadata":{"a":"b"})")), "accepted");
  EXPECT_EQ(param_of(chat(R"("metadata":{"a":1})")), "metadata.a");
  EXPECT_EQ(param_of(chat(R"("metadata":[])")), "metadata");
  EXPECT_EQ(param_of(chat(R"("metadata":{"a":")" + std::string(513, 'x') + "\"}")), "metadata.a");
  std::string umlauts;  // of two bytes each
  for (int i = 0; i < 512; ++i) umlauts += "\u00e4";
  EXPECT_EQ(param_of(chat(R"("metadata":{"a":")" + umlauts + "\"}")), "accepted");
  EXPECT_EQ(param_of(chat(R"("metadata":{"a":")" + umlauts + "\u00e4\"}")), "metadata.a");
}

TEST(OpenAiParameters, ReasoningEffortBecomesTemplateVariables) {
  const auto kwargs = [](const std::string& fields) { return std::get<ChatPrompt>(chat(fields).value().prompt).kwargs; };
  EXPECT_TRUE(kwargs("").is_null());
  EXPECT_EQ(*kwargs(R"("reasoning_effort":"low")").find("reasoning_effort"), Value("low"));
  EXPECT_EQ(*kwargs(R"("reasoning_effort":"low")").find("enable_thinking"), Value(true));
  EXPECT_EQ(*kwargs(R"("reasoning_effort":"max")").find("reasoning_effort"), Value("max"));
  EXPECT_EQ(*kwargs(R"("reasoning_effort":"none")").find("enable_thinking"), Value(false));
  const Value both = kwargs(R"("reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true,"x":1})");
  EXPECT_EQ(*both.find("enable_thinking"), Value(true));
  EXPECT_EQ(*both.find("x"), Value(1));
  EXPECT_EQ(param_of(chat(R"("reasoning_effort":"most")")), "reasoning_effort");
  EXPECT_EQ(param_of(chat(R"("reasoning_effort":1)")), "reasoning_effort");
}

TEST(OpenAiParameters, AThinkingBudgetBecomesTemplateVariablesToo) {
  const auto call = chat(R"("thinking_budget":7)").value();
  EXPECT_EQ(call.thinking_budget, 7);
  const Value& kwargs = std::get<ChatPrompt>(call.prompt).kwargs;
  EXPECT_EQ(*kwargs.find("thinking_budget"), Value(7));
  EXPECT_EQ(*kwargs.find("reasoning_budget"), Value(7));
  EXPECT_EQ(chat(R"("reasoning_budget":0)").value().thinking_budget, 0);
  EXPECT_TRUE(std::get<ChatPrompt>(chat(R"("reasoning_budget":-1)").value().prompt).kwargs.is_null());
  EXPECT_EQ(param_of(chat(R"("reasoning_budget":-2)")), "reasoning_budget");
  EXPECT_EQ(param_of(chat(R"("thinking_budget":-1)")), "thinking_budget");
  EXPECT_EQ(param_of(chat(R"("thinking_budget":"much")")), "thinking_budget");
}

TEST(OpenAiParameters, AMessageIsContinuedInsteadOfAnswered) {
  const auto prompt_of = [](const std::string& fields) { return std::get<ChatPrompt>(chat(fields).value().prompt); };
  EXPECT_TRUE(prompt_of("").add_generation_prompt);
  EXPECT_FALSE(prompt_of(R"("add_generation_prompt":false)").add_generation_prompt);
  EXPECT_TRUE(prompt_of(R"("continue_final_message":true)").continue_final_message);
  EXPECT_FALSE(prompt_of(R"("continue_final_message":true)").add_generation_prompt);
  EXPECT_EQ(param_of(chat(R"("continue_final_message":true,"add_generation_prompt":true)")), "continue_final_message");
}

TEST(OpenAiParameters, ThatAreNotServedAreRefusedUnlessTheyAskForNothing) {
  const Case cases[] = {
      {R"("modalities":["text"])", "accepted"},
      {R"("modalities":["audio"])", "modalities"},
      {R"("audio":{"voice":"x"})", "audio"},
      {R"("use_beam_search":true)", "use_beam_search"},
      {R"("chat_template":"{{ x }}")", "chat_template"},
      {R"("somebody_elses_field":[1,{"x":2}],"prediction":{})", "accepted"},
  };
  for (const Case& expected : cases) {
    EXPECT_EQ(param_of(completion(expected.fields)), expected.param) << expected.fields;
    EXPECT_EQ(param_of(chat(expected.fields)), expected.param) << expected.fields;
  }
}

TEST(OpenAiParameters, AnErrorNamesNoNumberThatWasNotSent) {
  EXPECT_EQ(completion(R"("max_tokens":4,"min_tokens":5000000000)").error().message, "'min_tokens' is more than the 4 of max_tokens");
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
  EXPECT_EQ(chat(R"("top_logprobs":0)")->sampling.top_logprobs, -1);
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
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[1].image_url.url"},
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

TEST(OpenAiMessages, ARefusalIsWhatTheAssistantSaid) {
  const auto call =
      messages(R"([{"role":"assistant","content":null,"refusal":"No."},{"role":"assistant","refusal":"No."},)"
               R"({"role":"assistant","content":"Yes.","refusal":"No."},{"role":"assistant","content":null,"refusal":null}])");
  const auto& list = *std::get<ChatPrompt>(call.value().prompt).messages.get_if<ValueList>();
  EXPECT_EQ(*list[0].find("content"), Value("No."));
  EXPECT_EQ(*list[1].find("content"), Value("No."));
  EXPECT_EQ(*list[2].find("content"), Value("Yes."));
  EXPECT_EQ(*list[3].find("content"), Value(""));
}

// A text of two bytes a value takes twenty times its size once it is read.
TEST(OpenAiMessages, ArgumentsHoldNoMoreValuesThanABody) {
  std::string list = R"({\"a\":[1)";
  for (int i = 0; i < 1'000'000; ++i) list += ",1";
  const std::string calls = R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":")" + list + R"(]}"}}]})";
  EXPECT_EQ(param_of(messages("[" + calls + "," + calls + "]")), "messages[1].tool_calls[0].function.arguments");
}

}  // namespace
}  // namespace braid::test
