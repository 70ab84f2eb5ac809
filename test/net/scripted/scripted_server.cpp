// A server whose model says what a script has for it, for end-to-end tests with clients that want more than a small model can. Each
// byte of a prompt is a token; the first rule whose words the prompt holds gives the answer. Calls are told as Hermes' models write
// them. It ends with its standard input.
#include "net/fake_constraints.h"
#include "net/json/parse.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace braid::test {
namespace {

// More than any prompt of a coding agent, whose tokens are its bytes.
constexpr std::int32_t kContext = 4'000'000;
constexpr std::size_t kMaxBody = std::size_t{32} << 20U;

struct Rule {
  std::string when;
  std::string say;
};

std::optional<std::string> text_of(const Value& rule, std::string_view name) {
  const Value* member = rule.find(name);
  const auto* text = member != nullptr ? member->get_if<std::string>() : nullptr;
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

// [{"when":…,"say":…},…]; empty when the file holds no such list.
std::vector<Rule> read_script(const char* path) {
  std::ifstream file(path);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const Result<Value> document = net::json::parse(bytes);
  const auto* list = document ? document->get_if<ValueList>() : nullptr;
  std::vector<Rule> rules;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    std::optional<std::string> when = text_of((*list)[i], "when");
    std::optional<std::string> say = text_of((*list)[i], "say");
    if (!when || !say) return {};
    rules.push_back({std::move(*when), std::move(*say)});
  }
  return rules;
}

std::vector<TokenEvent> answer_to(const std::vector<Rule>& rules, const GenerationRequest& request) {
  const std::string prompt(request.prompt.begin(), request.prompt.end());
  const auto tokens = static_cast<std::int32_t>(prompt.size());
  for (const Rule& rule : rules)
    if (prompt.find(rule.when) != std::string::npos) return events_of(rule.say, FinishReason::kStop, tokens);
  return events_of("The script has no answer to this.", FinishReason::kStop, tokens);
}

int run(const char* path) {
  const std::vector<Rule> rules = read_script(path);
  if (rules.empty()) {
    std::cerr << path << " is no script\n";
    return 2;
  }
  net::ServerOptions options = test_options();
  options.max_body_bytes = kMaxBody;
  FakeCodec codec;
  codec.chat_template = "tools <tool_call> <think></think>";
  const FakeCompiler compiler;
  TestServer server(std::move(options));
  server.on_loop([&] {
    server.model().id = "braid-demo";
    server.model().context_length = kContext;
    server.model().codec = &codec;
    server.model().constraints = &compiler;
    server.engine().script = [&rules](const GenerationRequest& request) { return answer_to(rules, request); };
  });
  std::cout << fmt::format("listening on http://127.0.0.1:{}\nready\n", server.port()) << std::flush;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}

}  // namespace
}  // namespace braid::test

int main(int argc, char** argv) { return argc == 2 ? braid::test::run(argv[1]) : 2; }
