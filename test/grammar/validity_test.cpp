// What walks through token masks give, and what is left of it after mutations, is judged by an independent validator.
#include "grammar/judge.h"
#include "grammar/walk.h"

#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace braid::test {
namespace {

std::vector<std::string> schemas() {
  std::ifstream in(BRAID_SOURCE_DIR "/test/grammar/schemas.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Inserts, deletes, doubles, swaps or replaces bytes.
std::string mutated(std::string text, std::mt19937& random) {
  static constexpr std::string_view kBytes = "\"\\{}[]:, \n0123456789-+.eEabcdtrufnx\xC3\xA9\x80\xFF";
  for (auto n = random() % 2; n < 2; ++n) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    const char byte = kBytes[random() % kBytes.size()];
    switch (random() % 5) {
      case 0:
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), byte);
        break;
      case 1:
        text.erase(at, 1 + random() % 3);
        break;
      case 2:
        if (!text.empty()) text[at] = byte;
        break;
      case 3:
        text.insert(at, text.substr(at, 1 + random() % 8));
        break;
      default:
        if (at + 1 < text.size()) std::swap(text[at], text[at + 1]);
    }
  }
  return text;
}

TEST(Validity, EveryWalkAndEveryAcceptedMutationSatisfiesItsSchema) {
  std::mt19937 random(7);
  SchemaJudge judge;
  std::size_t rejected = 0;
  for (const std::string& schema : schemas()) {
    const auto constraint = compile_or_die(schema_spec(schema));
    for (std::size_t i = 0; i < 12; ++i) {
      const Walk walk = random_walk(*constraint, random, i * 8);
      ASSERT_TRUE(walk.ended) << schema << "\n" << walk.text;
      ASSERT_TRUE(accepts(*constraint, walk.text)) << schema << "\n" << walk.text;
      judge.add(schema, walk.text);
      for (int k = 0; k < 6; ++k) {
        const std::string text = mutated(walk.text, random);
        if (accepts(*constraint, text)) {
          judge.add(schema, text);
        } else {
          ++rejected;
        }
      }
    }
  }
  EXPECT_GT(rejected, judge.size());
  const auto verdict = judge.verdict();
  if (!verdict) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(*verdict, fmt::format("{} sound\n", judge.size()));
}

}  // namespace
}  // namespace braid::test
