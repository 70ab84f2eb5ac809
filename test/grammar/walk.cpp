#include "grammar/walk.h"

#include "grammar/threads.h"
#include "net/json/parse.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace braid::test {
namespace {

constexpr TokenId kFirstByte = 2;

void accept_byte(ConstraintState& state, char byte) { state.accept(kFirstByte + static_cast<unsigned char>(byte)); }

// What brings a JSON text to its end comes first.
int rank(const std::string& bytes) {
  static constexpr std::string_view kClosers = "\"}]";
  if (bytes.size() != 1) return 400 + static_cast<int>(std::min<std::size_t>(bytes.size(), 50));
  if (const auto closer = kClosers.find(bytes.front()); closer != std::string_view::npos) return static_cast<int>(closer);
  return bytes.front() == '0'                            ? 3
         : bytes.front() == '{' || bytes.front() == '['  ? 390
         : bytes.front() == ' ' || bytes.front() == '\n' ? 380
                                                         : 100 + static_cast<unsigned char>(bytes.front());
}

}  // namespace

std::vector<grammar::VocabularyToken> toy_tokens() {
  std::vector<grammar::VocabularyToken> tokens = {{"</s>", true}, {"<tool>", true}};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte)), false});
  for (const char* piece : {"{\"",          "\":",      "\": ",     "\",",
                            "\", \"",       "\":\"",    "\"}",      "\"]",
                            "]}",           "}}",       "},",       "}, {",
                            "[]",           "{}",       "[[",       "\n",
                            "\n  ",         "\n    ",   ",\n  \"",  ": ",
                            ", ",           "true",     "false",    "null",
                            "tru",          "al",       "se",       "12",
                            "123",          "0.",       ".5",       "e+",
                            "e1",           "-1",       "00",       "2024",
                            "-0",           "\\n",      "\\u",      "\\\"",
                            "\\\\",         "00e9",     "d83d",     "\\ude00",
                            "na",           "me",       "name",     "age",
                            "the",          " the",     "abc",      "abcd",
                            "ABC",          "xyz",      "red",      "green",
                            "value",        "kind",     "next",     "child",
                            "id",           "@example", ".com",     "\xC3\xA9",
                            "\xE4\xB8\xAD", "\xE4\xB8", "\xAD\xE6", "\xF0\x9F\x98\x80",
                            "\xF0\x9F",     "\x98\x80", "\x80\"",   "\xC3",
                            "a\xC3",        "<tool",    "aaaaaaaa", "    "})
    tokens.push_back({piece, false});
  return tokens;
}

const grammar::Compiler& toy_compiler() {
  static const grammar::Compiler compiler([] { return grammar::Vocabulary(toy_tokens(), {kEnd}); });
  return compiler;
}

ConstraintSpec schema_spec(std::string json, bool strict) {
  auto value = net::json::parse(json);
  if (!value) std::fprintf(stderr, "%s\n", json.c_str()), std::abort();
  return {ConstraintSpec::JsonSchema{std::move(*value), strict}, "schema"};
}

std::shared_ptr<const Constraint> compile_or_die(const ConstraintSpec& spec) {
  auto constraint = toy_compiler().compile(spec);
  if (!constraint) std::fprintf(stderr, "%s\n", constraint.error().message.c_str()), std::abort();
  return *constraint;
}

std::vector<TokenId> allowed_tokens(ConstraintState& state) {
  static const std::size_t vocab = toy_tokens().size();
  std::vector<std::uint32_t> mask((vocab + 31) / 32);
  state.fill_mask(mask);
  std::vector<TokenId> out;
  for (std::size_t i = 0; i < vocab; ++i)
    if ((mask[i / 32] >> (i % 32) & 1U) != 0) out.push_back(static_cast<TokenId>(i));
  return out;
}

std::vector<TokenId> readable_tokens(const Constraint& constraint, std::string_view text) {
  const auto& automaton = dynamic_cast<const grammar::AutomatonConstraint&>(constraint);
  const grammar::Vocabulary& vocabulary = automaton.vocabulary();
  grammar::Threads threads(automaton.automaton());
  threads.push_state(automaton.automaton().start, 0, grammar::kBottom);
  for (const char byte : text) threads.push_byte(static_cast<std::uint8_t>(byte));
  std::vector<TokenId> out;
  if (threads.returned()) out.push_back(kEnd);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& bytes = vocabulary.bytes(static_cast<TokenId>(id));
    if (bytes.empty() || id == kEnd) continue;
    const std::size_t before = threads.size();
    for (const char byte : bytes) threads.push_byte(static_cast<std::uint8_t>(byte));
    if (!threads.top().empty()) out.push_back(static_cast<TokenId>(id));
    while (threads.size() > before) threads.pop();
  }
  return out;
}

Walk random_walk(const Constraint& constraint, std::mt19937& random, std::size_t free_tokens, std::size_t most_tokens) {
  static const auto tokens = toy_tokens();
  Walk walk;
  const auto state = constraint.start({});
  for (std::size_t i = 0; i < most_tokens; ++i) {
    const auto allowed = allowed_tokens(*state);
    if (allowed.empty()) break;
    const auto bytes = [&](TokenId token) -> const std::string& { return tokens[static_cast<std::size_t>(token)].bytes; };
    TokenId token = allowed[random() % allowed.size()];
    if (i >= free_tokens && allowed.front() == kEnd) token = kEnd;
    if (i >= free_tokens && allowed.front() != kEnd && random() % 8 != 0)
      token = *std::min_element(allowed.begin(), allowed.end(), [&](TokenId a, TokenId b) { return rank(bytes(a)) < rank(bytes(b)); });
    state->accept(token);
    if (token == kEnd) {
      walk.ended = true;
      break;
    }
    walk.text += bytes(token);
  }
  return walk;
}

bool accepts(const Constraint& constraint, std::string_view text) {
  const auto state = constraint.start({});
  for (const char byte : text) {
    const auto allowed = allowed_tokens(*state);
    if (!std::binary_search(allowed.begin(), allowed.end(), kFirstByte + static_cast<unsigned char>(byte))) return false;
    accept_byte(*state, byte);
  }
  const auto allowed = allowed_tokens(*state);
  return !allowed.empty() && allowed.front() == kEnd;
}

}  // namespace braid::test
