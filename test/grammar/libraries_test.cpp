// Schemas as the libraries write them that programs for OpenAI's API use: each compiles, and what is made under it is valid. They lie in
// libraries/, with the scripts that made them.
#include "grammar/judge.h"
#include "grammar/walk.h"
#include "net/json/parse.h"
#include "net/json/write_value.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace braid::test {
namespace {

struct Case {
  std::string library, name;
  Value schema;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& file : std::filesystem::directory_iterator(BRAID_SOURCE_DIR "/test/grammar/libraries")) {
    if (file.path().extension() != ".jsonl") continue;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      const auto value = net::json::parse(line);
      if (!value) ADD_FAILURE() << line;
      out.push_back({file.path().stem(), *value->find("name")->get_if<std::string>(), *value->find("schema")});
    }
  }
  return out;
}

// Restrictions that are not honoured, by the constructs that have them: everything else is.
bool may_be_left_out(const Case& one, const std::string& path) {
  if (one.library == "valibot" && one.name.ends_with("emoji")) return path.ends_with(".pattern");  // a class that leaves a property out
  static const std::vector<std::string> kEndings = {".uniqueItems", ".contains", ".not"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](const std::string& ending) { return path.ends_with(ending); });
}

ConstraintSpec spec(const Value& schema, bool strict) { return {ConstraintSpec::JsonSchema{schema, strict}, "schema"}; }

TEST(Libraries, WhatIsMadeUnderTheirSchemasIsValid) {
  std::mt19937 random(11);
  SchemaJudge judge;
  std::size_t schemas = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.library + ": " + one.name);
    const auto constraint = toy_compiler().compile(spec(one.schema, false));
    if (!constraint) {
      ADD_FAILURE() << constraint.error().message;
      continue;
    }
    ++schemas;
    const std::span<const std::string> left_out = (*constraint)->left_out();
    for (const std::string& path : left_out)
      EXPECT_TRUE(may_be_left_out(one, path)) << path << toy_compiler().compile(spec(one.schema, true)).error().message;
    std::string schema;
    net::json::append_value(schema, one.schema);
    for (std::size_t i = 0; i < 6; ++i) {
      const Walk walk = random_walk(**constraint, random, i * 10, 600);
      if (walk.ended) judge.add(schema, walk.text, left_out);
    }
  }
  EXPECT_GT(schemas, 600U);
  EXPECT_GT(judge.size(), schemas * 6 * 9 / 10);  // a pattern that may stand anywhere in a text is not always found by chance
  const auto verdict = judge.verdict();
  if (!verdict) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(*verdict, fmt::format("{} sound\n", judge.size()));
}

// What is left out without `strict` is what `strict` is refused for.
TEST(Libraries, StrictSchemasAreRefusedForWhatOthersLose) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.library + ": " + one.name);
    const auto lenient = toy_compiler().compile(spec(one.schema, false));
    const auto strict = toy_compiler().compile(spec(one.schema, true));
    ASSERT_TRUE(lenient);
    ASSERT_EQ(bool(strict), (*lenient)->left_out().empty());
    if (strict) continue;
    EXPECT_EQ(strict.error().param, (*lenient)->left_out().front());
  }
}

}  // namespace
}  // namespace braid::test
