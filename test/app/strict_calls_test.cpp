// Strict functions under auto: whatever a model writes under the constraint, each call that the parser of answers reads validates, and
// text that is no call is not held up. Models are walks that try to break it.
#include "net/generation/strict_calls.h"

#include "grammar/compiler.h"
#include "net/generation/parser/answer_parser.h"
#include "net/json/parse.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace braid::test {
namespace {

constexpr TokenId kStop = 0;
constexpr TokenId kTag = 1;        // the marker of Llama 3, a control token
constexpr TokenId kFirstByte = 2;  // and one token a byte

const grammar::Compiler& byte_compiler() {
  static const grammar::Compiler compiler([] {
    std::vector<grammar::VocabularyToken> tokens = {{"</s>", true}, {"<|python_tag|>", true}};
    for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte)), false});
    return grammar::Vocabulary(std::move(tokens), {kStop});
  });
  return compiler;
}

// A family's answers with the strict functions f and fetch, whose only argument is n: 1 or 2.
class Family {
 public:
  explicit Family(std::string_view chat_template, bool thinks = false) {
    syntax_.calls = &net::call_syntax_of(chat_template);
    syntax_.functions = {"f", "fetch"};
    if (thinks) syntax_.reasoning = {"<think>", "</think>"};
    std::string schema = R"({"type":"object","properties":{"n":{"enum":[1,2]}},"required":["n"],"additionalProperties":false})";
    const Value parameters = *net::json::parse(schema);
    const net::ToolRules rules{{{"f", parameters, true, "tools[0]"}, {"fetch", parameters, true, "tools[1]"}}, false, true};
    auto compiled = byte_compiler().compile(*net::strict_calls(rules, syntax_));
    EXPECT_TRUE(compiled) << chat_template << ": " << compiled.error().message;
    constraint_ = compiled.value();
  }

  std::unique_ptr<ConstraintState> start() const { return constraint_->start({}); }

  // The arguments of the calls in `text`; of a text that was cut off, without a last one that is not whole.
  std::vector<std::string> calls_of(std::string_view text, bool ended) const {
    net::AnswerParser parser(syntax_, 1);
    std::vector<net::Delta> deltas;
    parser.feed(text, deltas);
    parser.finish(!ended, deltas);
    std::vector<net::Delta> joined;
    for (net::Delta& delta : deltas) append_joined(joined, std::move(delta));
    std::vector<std::string> calls;
    for (const net::Delta& delta : joined) {
      if (std::holds_alternative<net::ToolCallBegin>(delta)) calls.emplace_back();
      if (const auto* arguments = std::get_if<net::ToolCallArguments>(&delta)) calls.back() += arguments->text;
    }
    return calls;
  }

 private:
  net::AnswerSyntax syntax_;
  std::shared_ptr<const Constraint> constraint_;
};

bool is_allowed(ConstraintState& state, TokenId token) {
  std::vector<std::uint32_t> mask((kFirstByte + 256 + 31) / 32);
  state.fill_mask(mask);
  const auto bit = static_cast<std::size_t>(token);
  return (mask[bit / 32] >> (bit % 32) & 1U) != 0;
}

TokenId token_of(char byte) { return kFirstByte + static_cast<unsigned char>(byte); }

bool accepts(const Family& family, std::string_view text) {
  const auto state = family.start();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_tag = text.substr(i).starts_with("<|python_tag|>");
    const TokenId token = is_tag ? kTag : token_of(text[i]);
    if (!is_allowed(*state, token)) return false;
    state->accept(token);
    if (is_tag) i += std::string_view("<|python_tag|>").size() - 1;
  }
  return is_allowed(*state, kStop);
}

const std::vector<std::string_view> kFamilies = {"no tools", "<|python_tag|>", "[func_name1(", "<|tool_call_start|>", "<tool_call>"};

TEST(StrictCallsInText, TextThatIsNoCallIsFree) {
  for (const std::string_view family : kFamilies) {
    const Family model(family);
    for (const std::string_view text : {"",
                                        " \n",
                                        "Hello!",
                                        "{}",
                                        "{\"a\": 1}",
                                        "{ \"named\": 1}",
                                        "{\"name\": \"Ada\", \"age\": 3}",
                                        "{\"name\": 5}",
                                        "{\"names\": []}",
                                        "{\"id\": 5, \"title\": \"x\"}",
                                        "{\"id\": \"x\"}",
                                        "{\"type\": \"circle\", \"r\": 2}",
                                        "{\"name\": \"fet\"}",
                                        "{\"arguments\": {\"a\": 1}}",
                                        "{\"arguments\": {\"n\": 3}, \"name\": \"other\"}",
                                        "{\"arguments\": {}, \"id\": \"x\", \"type\": \"function\"}",
                                        "{\"parameters\": {\"a\": {}}, \"title\": \"x\"} and more",
                                        "{\"id\": 1, \"arguments\": {\"n\": 3}, \"name\": 5}",
                                        "{\"arguments\": \"text\"}",
                                        "{\"arguments\": \"\"}",
                                        "{\"arguments\": 5}",
                                        "{\"arguments\": [{\"n\": 3}]}",
                                        "{\"arguments\": true, \"name\": \"f\"}",
                                        "{x}",
                                        "[]",
                                        "[1, 2]",
                                        "[{\"a\": 1}]",
                                        "[[1]]",
                                        "`code`",
                                        "```json\n{\"a\": 1}\n```\nDone.",
                                        "```json\n[1]\n```",
                                        "<b>",
                                        "a {\"name\": \"f\"}",
                                        "\xC3\xA9"}) {
      EXPECT_TRUE(accepts(model, text)) << family << ": " << text;
      EXPECT_TRUE(model.calls_of(text, true).empty()) << family << ": " << text;
    }
  }
}

TEST(StrictCallsInText, CallsAreReadAsTheModelWritesThem) {
  const auto expect = [](std::string_view family, std::initializer_list<std::string_view> texts) {
    const Family model(family);
    for (const std::string_view text : texts) {
      EXPECT_TRUE(accepts(model, text)) << family << ": " << text;
      const auto calls = model.calls_of(text, true);
      ASSERT_FALSE(calls.empty()) << family << ": " << text;
      for (const std::string& call : calls) EXPECT_EQ(call, "{\"n\":1}") << family << ": " << text;
    }
  };
  const std::string_view plain = R"({"name": "f", "arguments": {"n":1}})";
  expect("no tools", {plain, R"( { "type": "function", "name" : "fetch", "parameters":{"n":1} } )", R"([{"name":"f","arguments":{"n":1}}])",
                      "```json\n{\"name\": \"f\", \"arguments\": {\"n\":1}}\n```",
                      "So:\n<tool_call>{\"name\":\"f\",\"arguments\":{\"n\":1}}</tool_call> Done."});
  expect("<|python_tag|>", {plain, R"({"name": "f", "parameters": {"n":1}}; {"name": "fetch", "parameters": {"n":1}})",
                            R"(Well. <|python_tag|>{"name": "f", "parameters": {"n":1}})"});
  expect("[func_name1(", {plain, R"([f(**{"n":1}), fetch(**{"n":1})])"});
  expect("<|tool_call_start|>", {R"(Now <|tool_call_start|>[f(**{"n":1})]<|tool_call_end|> and more)",
                                 R"(<|tool_call_start|>[{"name": "f", "arguments": {"n":1}}]<|tool_call_end|>)"});
}

// What a model might write that would be a call with wrong arguments.
const std::vector<std::string_view> kAttempts = {
    R"({"name": "f", "arguments": {"n": 3}})",
    R"({"arguments": {"n": 3}, "name": "f"})",
    R"({"name": "Ada", "name": "f", "arguments": {"n": 3}})",
    R"({"id": 56, "name": "f", "arguments": {}})",
    R"({"type": {"a": 1}, "name": "f", "arguments": {}})",
    R"({"name": "\u0066", "arguments": {"n": 9}})",
    R"([{"name": "f", "arguments": {"n":1}}, {"name": "fetch", "arguments": {}}])",
    R"({"name": "f", "arguments": {"n":1}} {"name": "f", "arguments": {}})",
    R"({"name": "f", "arguments": "{}"})",
    R"({"function": "fetch", "parameters": null})",
    "[f(n=3), fetch()]",
    "[f()]",
    "[f(**{\"n\":1}) fetch(n=3)]",
    "```json\n{\"name\": \"f\", \"arguments\": {\"n\": 3}}\n```",
    "a ```json [{\"name\": \"f\", \"arguments\": {}}]",
    "<tool_call>{\"name\": \"f\"}</tool_call>",
    "<tool_call>{\"a\": 1, \"name\": \"f\", \"arguments\": {}}",
    "b <tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\":1}}\n</tool_call>{\"name\": \"f\", \"arguments\": {}}",
    "<|tool_call_start|>[f(n=3)]<|tool_call_end|>",
    "<|python_start|>[f(n=3)]<|python_end|>",
    "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
    "<<|python_tag|>{\"name\": \"f\"}",
    "{`<tool_call>{\"name\": \"f\"}",
    "[<tool_call>{\"name\": \"f\"}",
    "<think>x</think>{\"name\": \"f\", \"arguments\": {}}"};

TEST(StrictCallsInText, NoWalkMakesACallThatIsWrong) {
  std::mt19937 random(37);
  constexpr std::string_view kBytes = "{}[]\",:() \n`<>;*fn123ae";
  for (const bool thinks : {false, true}) {
    for (const std::string_view family : kFamilies) {
      const Family model(family, thinks);
      std::size_t calls = 0;
      for (int round = 0; round < 1500; ++round) {
        const std::string_view attempt = kAttempts[random() % kAttempts.size()];
        const auto state = model.start();
        std::string text;
        for (std::size_t at = 0; at < attempt.size() && text.size() < 300;) {
          const bool strays = random() % 20 == 0;
          const TokenId token = token_of(strays ? kBytes[random() % kBytes.size()] : attempt[at]);
          if (is_allowed(*state, token)) {
            state->accept(token);
            text += static_cast<char>(token - kFirstByte);
            if (!strays || random() % 2 == 0) ++at;
            continue;
          }
          std::vector<char> allowed;
          for (const char byte : kBytes)
            if (is_allowed(*state, token_of(byte))) allowed.push_back(byte);
          if (allowed.empty()) break;
          text += allowed[random() % allowed.size()];
          state->accept(token_of(text.back()));
          at += random() % 2;
        }
        const bool ended = is_allowed(*state, kStop);
        std::vector<std::string> found = model.calls_of(text, ended);
        if (!ended && !found.empty()) found.pop_back();
        for (std::string& call : found) {
          std::erase_if(call, [](char c) { return c == ' ' || c == '\n'; });
          EXPECT_TRUE(call == "{\"n\":1}" || call == "{\"n\":2}") << family << ": " << text << ": " << call;
        }
        calls += found.size();
      }
      EXPECT_GT(calls, 5U) << family;
    }
  }
}

}  // namespace
}  // namespace braid::test
