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

// The schemas that a schema consists of, by their paths, as far as errors name them by where they stand.
void collect_schemas(Value& schema, const std::string& path, std::vector<std::pair<std::string, Value*>>& out) {
  if (schema.get_if<ValueDict>() == nullptr) return;
  out.emplace_back(path, &schema);
  for (auto& [name, value] : *schema.get_if<ValueDict>()) {
    if (name == "items" || name == "additionalProperties") collect_schemas(value, path + "." + name, out);
    if (auto* properties = value.get_if<ValueDict>(); properties != nullptr && name == "properties")
      for (auto& [property, inner] : *properties) collect_schemas(inner, path + ".properties." + property, out);
    if (auto* branches = value.get_if<ValueList>(); branches != nullptr && name == "anyOf")
      for (std::size_t i = 0; i < branches->size(); ++i) collect_schemas((*branches)[i], fmt::format("{}.anyOf[{}]", path, i), out);
  }
}

// A keyword that cannot be honoured, put anywhere into a schema, is lost alone: the rest is the schema without it.
TEST(Libraries, AFaultAnywhereInThemIsLostAlone) {
  const std::pair<const char*, Value> faults[] = {
      {"type", "any"},   {"type", ValueList{}},  {"required", true},         {"enum", ValueList{}},       {"minLength", "1"},
      {"maximum", true}, {"anyOf", ValueDict{}}, {"$ref", "#/$defs/nobody"}, {"properties", ValueList{}}, {"contains", true},
      {"pattern", 5},    {"items", "string"}};
  std::mt19937 random(37);
  std::size_t checked = 0;
  for (const Case& one : cases()) {
    Value faulty = one.schema;
    std::vector<std::pair<std::string, Value*>> places;
    collect_schemas(faulty, "schema", places);
    if (places.empty()) continue;
    const auto& [keyword, value] = faults[random() % std::size(faults)];
    const auto& [path, place] = places[random() % places.size()];
    auto& members = *place->get_if<ValueDict>();
    std::erase_if(members, [&wrong = keyword](const auto& member) { return member.first == wrong; });
    const Value mended = faulty;
    members.emplace_back(keyword, value);
    SCOPED_TRACE(fmt::format("{}: {}, {}.{}", one.library, one.name, path, keyword));
    const auto lenient = toy_compiler().compile(spec(faulty, false));
    const auto without = toy_compiler().compile(spec(mended, false));
    if (toy_compiler().compile(spec(faulty, true))) continue;  // where no value can stand
    ASSERT_TRUE(lenient && without);
    std::vector<std::string> lost(without.value()->left_out().begin(), without.value()->left_out().end());
    if (!lost.empty() && lost.front() == "schema") continue;  // nothing satisfies what is left
    lost.push_back(fmt::format("{}.{}", path, keyword));
    std::vector<std::string> told((*lenient)->left_out().begin(), (*lenient)->left_out().end());
    std::ranges::sort(lost);
    std::ranges::sort(told);
    EXPECT_EQ(told, lost);
    ++checked;
    for (const auto& [from, to] : {std::pair(*lenient, *without), std::pair(*without, *lenient)}) {
      const Walk walk = random_walk(*from, random, 20, 300);
      if (!walk.ended) continue;
      EXPECT_TRUE(accepts(*to, walk.text)) << walk.text;
    }
  }
  EXPECT_GT(checked, 600U);
}

}  // namespace
}  // namespace braid::test
