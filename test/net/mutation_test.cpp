// Bodies and connections that are nearly right: whatever a client sends, no answer is a server error.
#include "fuzz/http_json.h"
#include "fuzz/stream_parser.h"
#include "net/test_server.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace braid::test {
namespace {

constexpr std::array<std::string_view, 26> kBodies = {
    R"({"model":"default","prompt":"Once upon a time","max_tokens":5,"temperature":0.5,"top_p":0.9,"seed":7,"stop":["x","yy"]})",
    R"({"prompt":[[1,2,3],[4,5]],"logprobs":3,"return_token_ids":true,"stop_token_ids":[7],"min_tokens":2,"ignore_eos":false})",
    R"({"prompt":["a","b<eos>"],"stream":true,"stream_options":{"include_usage":true},"top_k":40,"min_p":0.05,"n":1,"user":"u"})",
    R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hé"}]}],"logprobs":true})",
    R"({"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}],"top_logprobs":null})",
    R"({"messages":[{"role":"user","content":"a"}],"max_completion_tokens":9,"tools":[],"response_format":{"type":"text"}})",
    R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,)"
    R"("parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],"tool_choice":"required","parallel_tool_calls":false})",
    R"({"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
    R"({"role":"tool","tool_call_id":"c","content":"1"}],"tools":[{"type":"function","function":{"name":"f"}}],"stream":true,)"
    R"("tool_choice":{"type":"function","function":{"name":"f"}}})",
    R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":)"
    R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}})",
    R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},)"
    R"("logit_bias":{"5":-100},"n":2,"reasoning_effort":"low","seed":1,"stop":"x","presence_penalty":0.5})",
    R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
    R"({"type":"function_call_output","call_id":"c","output":"1"}],"instructions":"Be brief.","tools":[{"type":"function","name":"f"}],)"
    R"("max_output_tokens":5,"store":false,"stream":true,"text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}})",
    R"({"input":"hi","tool_choice":"required","tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true}]})",
    R"({"max_tokens":5,"system":"Be brief.","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},)"
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"1"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}})",
    R"({"model":"default","input":[{"role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"reasoning","summary":[],)"
    R"("content":[{"type":"reasoning_text","text":"b"}]}],"previous_response_id":"resp_1","max_output_tokens":2,"store":true,"temperature":1})",
    R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"thinking":{"type":"enabled","budget_tokens":3},)"
    R"("stop_sequences":["x"],"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"}})",
    R"({"messages":[{"role":"user","content":"a"}],"thinking_budget":3,"reasoning_budget":-1,"chat_template_kwargs":{"a":[1]},)"
    R"("add_generation_prompt":false,"continue_final_message":true,"with_pieces":true})",
    R"({"content":"a<eos>é","add_special":true,"parse_special":false,"with_pieces":true,"prompt":"b","add_special_tokens":false})",
    R"({"tokens":[104,105,255,257,258]})",
    R"({"model":"default","input":[97,98,99],"priority":3,"user":"u"})",
    R"({"id":"chatcmpl-1"})",
    R"({"model":"policy","observations":{"x":[[1,2],[3,4.5]]},"hidden_states":{"s":[0,1]},"seed":[1,-2],"step":3,"deterministic":false})",
    R"({"model":"policy","observations":[[1,2]],"session":"a","session_ttl":9,"session_reset":true,"encoding_format":"base64"})",
    R"({"observations":["go",[7,8],[{"role":"user","content":"x"}]],"actions":["a","b"],"deterministic":true,"max_tokens":2,"seed":1})",
    R"({"prompt":[[7,8],[9]],"n":2,"max_tokens":2,"seed":1,"reference":"fake-model","return_hidden":[0,-1,5],"return_values":false,"stop_regex":"a+"})",
    R"({"name":"liked","data":[{"chosen":"a","rejected":[98]},{"chosen":[{"role":"user","content":"c"}],"rejected":"d"}],"epochs":3,)"
    R"("learning_rate":0.1,"l2":0,"held_out":0.25,"checkpoint_every":1,"resume":false})",
    R"({"path":"w.safetensors","partial":true,"checksum":"00","mode":"keep","version":"v","model":"fake-model","shared_memory":"x"})",
};

constexpr std::array<std::string_view, 24> kPieces = {
    "null",       "true",         "-1",       "0",    "1e308", "-0.0", "9223372036854775808",
    R"("")",      R"("text")",    "[]",       "{}",   "[[]]",  "{",    "}",
    "\"",         "\\ud800",      "\\u0000",  "\xff", ",",     ":",    "[1,2]",
    "2147483648", "\"content\":", "\"stop\":"};

constexpr std::array<std::string_view, 16> kTargets = {
    "/v1/completions", "/v1/chat/completions", "/v1/responses",     "/v1/messages",   "/v1/messages/count_tokens",  "/tokenize",
    "/detokenize",     "/apply-template",      "/v1/perplexity",    "/v1/abort",      "/v1/responses/input_tokens", "/v1/responses/compact",
    "/v1/rl/act",      "/v1/rl/rollout",       "/v1/training/jobs", "/update_weights"};

// One random edit of bytes.
void mutate(std::string& text, std::mt19937& random) {
  const auto at = [&] { return random() % (text.size() + 1); };
  const std::size_t position = at();
  switch (random() % 5) {
    case 0:
      text.insert(position, kPieces[random() % kPieces.size()]);
      return;
    case 1:
      text.erase(position, random() % 8);
      return;
    case 2:
      text.replace(position, random() % 6, kPieces[random() % kPieces.size()]);
      return;
    case 3:
      text.insert(position, text.substr(at(), random() % 32));
      return;
    default:
      if (position < text.size()) text[position] = static_cast<char>(random());
  }
}

// One random exchange of a JSON value for another one, so that most results still are JSON.
void exchange_value(std::string& text, std::mt19937& random) {
  const std::size_t colon = text.find(':', random() % text.size());
  if (colon == std::string::npos) return;
  const std::size_t end = text.find_first_of(",}]", colon);
  text.replace(colon + 1, end == std::string::npos ? 0 : end - colon - 1, kPieces[random() % 12]);
}

std::string mutant(std::mt19937& random) {
  std::string body(kBodies[random() % kBodies.size()]);
  for (auto edits = 1 + random() % 3; edits > 0 && !body.empty(); --edits)
    random() % 2 == 0 ? mutate(body, random) : exchange_value(body, random);
  return body;
}

// BRAID_MUTATIONS asks for a longer campaign.
int mutations() {
  const char* wish = std::getenv("BRAID_MUTATIONS");
  return wish == nullptr ? 20'000 : std::atoi(wish);
}

TEST(Mutation, NoBodyIsAServerError) {
  std::mt19937 random(1);
  for (int i = mutations(); i > 0; --i) {
    const std::string body = mutant(random);
    for (const BodyKind kind : kBodyKinds) fuzz_body(body, kind);
  }
}

TEST(Mutation, NoRequestIsAServerErrorOverTheWire) {
  TestServer server;
  server.on_loop([&] { server.engine().script = answer_or_review; });
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    const std::string body = mutant(random);
    const std::string_view target = kTargets[static_cast<std::size_t>(i) % kTargets.size()];
    const Reply reply = server.ask(from_this_machine(post(target, body)));
    ASSERT_TRUE(reply.status >= 200 && reply.status < 500) << reply.status << " for " << body;
  }
}

std::vector<std::string> corpus(const std::string& target) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/fuzz/corpus/" + target)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

// Each seed of `target`, and `neighbours` mutants of each.
void replay(const std::string& target, void (*fuzz)(std::string_view), int neighbours) {
  const std::vector<std::string> seeds = corpus(target);
  ASSERT_FALSE(seeds.empty());
  std::mt19937 random(3);
  for (const std::string& seed : seeds) {
    fuzz(seed);
    for (int i = 0; i < neighbours; ++i) {
      std::string neighbour = seed;
      for (auto edits = 1 + random() % 4; edits > 0; --edits) mutate(neighbour, random);
      fuzz(neighbour);
    }
  }
}

TEST(Mutation, TheFuzzCorporaAndTheirNeighboursPass) {
  replay("http_json", fuzz_http_json, 500);
  replay("stream_parser", fuzz_stream_parser, 2000);
}

}  // namespace
}  // namespace braid::test
