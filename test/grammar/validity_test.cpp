// What walks through token masks give, and what is left of it after mutations, is judged by an independent validator.
#include "grammar/json/syntax.h"
#include "grammar/walk.h"

#include <cstdio>
#include <filesystem>
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

// Runs the validator on lines {"schema": …, "text": …}; what it prints ends with "N sound".
std::string judge(const std::filesystem::path& cases) {
  const std::string command = fmt::format("{} {}/test/grammar/validate.py {} 2>&1", BRAID_PYTHON, BRAID_SOURCE_DIR, cases.string());
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no python";
  std::string output;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, size);
  pclose(pipe);
  return output;
}

TEST(Validity, EveryWalkAndEveryAcceptedMutationSatisfiesItsSchema) {
  std::mt19937 random(7);
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("grammar_cases_{}.jsonl", random());
  std::ofstream out(path);
  std::size_t cases = 0;
  std::size_t rejected = 0;
  const auto write = [&](const std::string& schema, const std::string& text) {
    out << "{\"schema\":" << schema << ",\"text\":" << grammar::json::quote(text) << "}\n";
    ++cases;
  };
  for (const std::string& schema : schemas()) {
    const auto constraint = compile_or_die(schema_spec(schema));
    for (std::size_t i = 0; i < 12; ++i) {
      const Walk walk = random_walk(*constraint, random, i * 8);
      ASSERT_TRUE(walk.ended) << schema << "\n" << walk.text;
      ASSERT_TRUE(accepts(*constraint, walk.text)) << schema << "\n" << walk.text;
      write(schema, walk.text);
      for (int k = 0; k < 6; ++k) {
        const std::string text = mutated(walk.text, random);
        if (accepts(*constraint, text)) {
          write(schema, text);
        } else {
          ++rejected;
        }
      }
    }
  }
  out.close();
  EXPECT_GT(rejected, cases);
  const std::string verdict = judge(path);
  if (verdict.find("No module named 'jsonschema'") != std::string::npos) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(verdict, fmt::format("{} sound\n", cases));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace braid::test
