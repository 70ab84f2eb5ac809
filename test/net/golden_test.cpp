// Transcripts of event streams, byte for byte: each file of golden/ is a request, what the model says, and the answer's body.
// BRAID_UPDATE_GOLDEN=1 writes the answers anew.
#include "net/test_server.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

namespace braid::test {
namespace {

constexpr std::string_view kModel = "\n--- model\n";
constexpr std::string_view kAnswer = "\n--- answer\n";

struct Transcript {
  std::string target, body, model, answer;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// TARGET, a line feed, the body; then what the model says; then the answer.
Transcript parse(const std::string& text) {
  const std::size_t line = text.find('\n');
  const std::size_t model = text.find(kModel);
  const std::size_t answer = text.find(kAnswer, model);
  const std::size_t said = model + kModel.size();
  return {text.substr(0, line), text.substr(line + 1, model - line - 1), text.substr(said, answer - said),
          text.substr(answer + kAnswer.size())};
}

// The model says "CUT" at the end for max_tokens, "FAIL" for an error.
std::vector<TokenEvent> events_of_model(std::string text, std::int32_t prompt_tokens) {
  const bool cut = text.ends_with("CUT");
  const bool failed = text.ends_with("FAIL");
  text.resize(text.size() - (cut ? 3 : failed ? 4 : 0));
  std::vector<TokenEvent> events = events_of(text, cut ? FinishReason::kLength : FinishReason::kStop, prompt_tokens);
  if (!failed) return events;
  Finish finish;
  finish.reason = FinishReason::kError;
  finish.error = Error{ErrorCode::kInternal, "the step failed", ""};
  events.back() = std::move(finish);
  return events;
}

std::vector<std::filesystem::path> transcripts() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/net/golden")) files.push_back(entry.path());
  return files;
}

class ThinkingCodec final : public FakeCodec {
 public:
  ThinkingCodec() { chat_template = "tools <tool_call> </think>"; }
};

TEST(Golden, EveryTranscriptIsExact) {
  const ThinkingCodec codec;
  TestServer server;
  server.on_loop([&] { server.model().codec = &codec; });
  for (const std::filesystem::path& path : transcripts()) {
    const std::string text = read_file(path);
    const Transcript transcript = parse(text);
    server.on_loop([&] {
      server.engine().script = [&](const GenerationRequest& request) {
        return events_of_model(transcript.model, static_cast<std::int32_t>(request.prompt.size()));
      };
    });
    const std::string answer = normalized(server.ask(post(transcript.target, transcript.body)).body);
    if (std::getenv("BRAID_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path, std::ios::binary) << text.substr(0, text.size() - transcript.answer.size()) << answer;
    } else {
      EXPECT_EQ(answer, transcript.answer) << path;
    }
  }
}

}  // namespace
}  // namespace braid::test
