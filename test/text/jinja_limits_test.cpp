// What a template may not do: run on, grow, nest without end, or fail without saying where.
#include "fuzz/jinja.h"
#include "text/chat_template.h"
#include "text/jinja/program.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace braid::text {
namespace {

using testing::HasSubstr;

constexpr jinja::RenderLimits kSmall = {.steps = 300'000, .bytes = 4 << 20, .output_bytes = 1 << 20};

std::string error_of(std::string_view source, const jinja::RenderLimits& limits = kSmall) {
  const auto program = jinja::Program::parse(source);
  if (!program) return program.error().message;
  const auto rendered = program->render({}, limits);
  return rendered ? "no error, but: " + rendered->substr(0, 200) : rendered.error().message;
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

TEST(JinjaErrors, NameTheLineAndTheConstruct) {
  EXPECT_EQ(error_of("a\nb\n{% include 'x' %}"), "line 3 of the chat template: {% include %} is not supported in a chat template");
  EXPECT_EQ(error_of("a\n{{ 1 | sparkle }}"), "line 2 of the chat template: there is no filter 'sparkle'");
  EXPECT_EQ(error_of("{% if 1 %}\n\n{{ x.y.z }}{% endif %}"), "line 3 of the chat template: 'x' is undefined");
  EXPECT_EQ(error_of("{% set m = {} %}\n{{ m['role'].upper() }}"), "line 2 of the chat template: 'role' is undefined");
  EXPECT_EQ(error_of("\n{{ raise_exception('Roles must alternate') }}"), "line 2 of the chat template: Roles must alternate");
  EXPECT_EQ(error_of("\n{% if 1 %}\n\n"), "line 2 of the chat template: {% if %} is not closed by {% endif %}");
  EXPECT_EQ(error_of("{{ 1 +\n* }}"), "line 2 of the chat template: expected an expression, found '*'");
}

TEST(JinjaLimits, EndWhatRunsOn) {
  EXPECT_THAT(error_of("{% for i in range(900) %}{% for j in range(900) %}{% endfor %}{% endfor %}"), HasSubstr("too many steps"));
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("calls itself too deeply"));
  EXPECT_THAT(error_of("{{ range(100001) }}"), HasSubstr("range is longer than"));
  EXPECT_THAT(error_of("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"), HasSubstr("calls itself too deeply"));
}

TEST(JinjaLimits, EndWhatGrows) {
  EXPECT_THAT(error_of("{{ 'ab' * 999999999999 }}"), HasSubstr("too large"));
  EXPECT_THAT(error_of("{{ [0] * 999999999999 }}"), HasSubstr("too large"));
  EXPECT_THAT(error_of("{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
              HasSubstr("too large"));
  EXPECT_THAT(error_of("{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}"), HasSubstr("too large"));
  EXPECT_THAT(error_of("{% for i in range(9) %}{{ 'x' * 1000 }}{% endfor %}", {.steps = 1000, .bytes = 100'000, .output_bytes = 5000}),
              HasSubstr("too long"));
  EXPECT_THAT(error_of("{{ '%9999999d' | format(1) }}"), HasSubstr("too wide"));
}

TEST(JinjaLimits, EndWhatSharesItselfManyTimes) {
  const std::string doubling = "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}";
  EXPECT_THAT(error_of(doubling + "{{ ns.l }}"), HasSubstr("too large"));
  EXPECT_THAT(error_of(doubling + "{{ ns.l | tojson }}"), HasSubstr("too large"));
  EXPECT_THAT(error_of(doubling + "{% set a = ns.l %}" + doubling + "{{ a == ns.l }}"), HasSubstr("too many steps"));
}

TEST(JinjaLimits, EndWhatNests) {
  EXPECT_THAT(error_of("{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [ns.l] %}{% endfor %}"),
              HasSubstr("nest too deeply"));
  EXPECT_THAT(error_of("{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [ns.l.append] %}{% endfor %}"),
              HasSubstr("nest too deeply"));
  EXPECT_THAT(error_of("{{ " + repeated("(", 10000) + repeated(")", 10000) + " }}"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("{{ " + repeated("not ", 10000) + "1 }}"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("{{ " + repeated("-", 10000) + "1 }}"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("{{ 1" + repeated(" + 1", 10000) + " }}"), HasSubstr("too long or nests too deeply"));
  EXPECT_THAT(error_of("{{ a" + repeated(".b", 10000) + " }}"), HasSubstr("too long or nests too deeply"));
  EXPECT_THAT(error_of("{{ 1" + repeated(" if 1", 10000) + " }}"), HasSubstr("too long or nests too deeply"));
  EXPECT_THAT(error_of(repeated("{% if 1 %}", 10000)), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("{% set " + repeated("(", 10000) + repeated(")", 10000) + " %}"), HasSubstr("too deeply"));
}

TEST(JinjaLimits, KeepAListFromHoldingItself) {
  EXPECT_THAT(error_of("{% set l = [] %}{{ l.append(l) }}"), HasSubstr("cannot take itself"));
  EXPECT_THAT(error_of("{% set l = [] %}{% set m = [l] %}{{ l.append({'a': m}) }}"), HasSubstr("cannot take itself"));
  EXPECT_THAT(error_of("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me.you }}ok"), HasSubstr("no error"));
}

TEST(JinjaLimits, RefuseAConversationThatNestsTooDeeply) {
  Value nested = ValueList{};
  for (int i = 0; i < 1000; ++i) nested = ValueList{std::move(nested)};
  const auto parsed = ChatTemplate::parse("{{ messages }}", "", "");
  ASSERT_TRUE(parsed);
  ChatPrompt prompt;
  prompt.messages = std::move(nested);
  const auto rendered = parsed->render(prompt);
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().param, "messages");
}

TEST(ChatTemplate, LetsKwargsSetVariablesButNotTheConversation) {
  const auto parsed = ChatTemplate::parse("{{ bos_token }}{{ enable_thinking }}{{ messages }}{{ tools }}", "<s>", "</s>");
  ASSERT_TRUE(parsed);
  ChatPrompt prompt;
  prompt.messages = ValueList{};
  prompt.kwargs = ValueDict{{"enable_thinking", false}, {"bos_token", "<b>"}, {"messages", 5}};
  const auto rendered = parsed->render(prompt);
  ASSERT_TRUE(rendered);
  EXPECT_EQ(*rendered, "<b>False[]None");
}

TEST(ChatTemplate, RendersFromSeveralThreadsAtOnce) {
  const auto parsed = ChatTemplate::parse("{% for m in messages %}{{ m.role ~ ': ' ~ m.content | upper }}{% endfor %}{{ 'done' }}", "", "");
  ASSERT_TRUE(parsed);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&parsed] {
      ChatPrompt prompt;
      prompt.messages = ValueList{ValueDict{{"role", "user"}, {"content", "hi"}}};
      for (int i = 0; i < 50; ++i) {
        const auto rendered = parsed->render(prompt);
        ASSERT_TRUE(rendered);
        ASSERT_EQ(*rendered, "user: HIdone");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Random edits of the seeds: bytes, cuts, repeats and pieces of other seeds.
std::string mutated(const std::vector<std::string>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  std::string text = seeds[below(seeds.size())];
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(std::min<std::size_t>(40, text.size() - at));
    const auto& other = seeds[below(seeds.size())];
    switch (below(4)) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, other.substr(below(other.size()), 40));
        break;
    }
  }
  return text;
}

TEST(JinjaFuzz, HoldsOnTheCorpusAndOnMutationsOfIt) {
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/fuzz/corpus/jinja"))
    seeds.push_back(read(entry.path()));
  ASSERT_GT(seeds.size(), 5U);
  std::sort(seeds.begin(), seeds.end());
  for (const auto& seed : seeds) braid::test::fuzz_jinja(seed);
  std::mt19937 random(20240229);
  for (int i = 0; i < 3000; ++i) braid::test::fuzz_jinja(mutated(seeds, random));
}

}  // namespace
}  // namespace braid::text
