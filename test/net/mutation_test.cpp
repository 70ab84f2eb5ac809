// Bodies and connections that are nearly right: whatever a client sends, no answer is a server error.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/http_json.h"
#include "test_server.h"

namespace braid::test {
namespace {

constexpr std::array<std::string_view, 6> kCompletions = {
    R"({"model":"default","prompt":"Once upon a time","max_tokens":5,"temperature":0.5,"top_p":0.9,"seed":7,"stop":["x","yy"]})",
    R"({"prompt":[[1,2,3],[4,5]],"logprobs":3,"return_token_ids":true,"stop_token_ids":[7],"min_tokens":2,"ignore_eos":false})",
    R"({"prompt":["a","b<eos>"],"stream":true,"stream_options":{"include_usage":true},"top_k":40,"min_p":0.05,"n":1,"user":"u"})",
    R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hé"}]}],"logprobs":true})",
    R"({"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}],"top_logprobs":null})",
    R"({"messages":[{"role":"user","content":"a"}],"max_completion_tokens":9,"tools":[],"response_format":{"type":"text"}})",
};

constexpr std::array<std::string_view, 24> kPieces = {
    "null",       "true",         "-1",       "0",    "1e308", "-0.0", "9223372036854775808",
    R"("")",      R"("text")",    "[]",       "{}",   "[[]]",  "{",    "}",
    "\"",         "\\ud800",      "\\u0000",  "\xff", ",",     ":",    "[1,2]",
    "2147483648", "\"content\":", "\"stop\":"};

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
  std::string body(kCompletions[random() % kCompletions.size()]);
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
    fuzz_body(body, false);
    fuzz_body(body, true);
  }
}

TEST(Mutation, NoRequestIsAServerErrorOverTheWire) {
  TestServer server;
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    const std::string body = mutant(random);
    const Reply reply = server.ask(post(i % 2 == 0 ? "/v1/completions" : "/v1/chat/completions", body));
    ASSERT_TRUE(reply.status >= 200 && reply.status < 500) << reply.status << " for " << body;
  }
}

std::vector<std::string> corpus() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/fuzz/corpus/http_json")) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

TEST(Mutation, TheFuzzCorpusAndItsNeighboursPass) {
  const std::vector<std::string> seeds = corpus();
  ASSERT_FALSE(seeds.empty());
  std::mt19937 random(3);
  for (const std::string& seed : seeds) {
    fuzz_http_json(seed);
    for (int i = 0; i < 500; ++i) {
      std::string neighbour = seed;
      for (auto edits = 1 + random() % 4; edits > 0; --edits) mutate(neighbour, random);
      fuzz_http_json(neighbour);
    }
  }
}

}  // namespace
}  // namespace braid::test
