#include "grammar/judge.h"

#include "grammar/json/syntax.h"

#include <cstdio>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace braid::test {

SchemaJudge::SchemaJudge()
    : path_(std::filesystem::path(testing::TempDir()) / fmt::format("grammar_cases_{}_{}.jsonl", getpid(), fmt::ptr(this))), out_(path_) {}

SchemaJudge::~SchemaJudge() { std::filesystem::remove(path_); }

void SchemaJudge::add(const std::string& schema, const std::string& text, std::span<const std::string> left_out) {
  std::string paths;
  for (const std::string& path : left_out) paths += (paths.empty() ? "" : ",") + grammar::json::quote(path);
  out_ << fmt::format("{{\"schema\":{},\"text\":{},\"left_out\":[{}]}}\n", schema, grammar::json::quote(text), paths);
  ++cases_;
}

std::optional<std::string> SchemaJudge::verdict() {
  out_.close();
  const std::string command = fmt::format("{} {}/test/grammar/validate.py {} 2>&1", BRAID_PYTHON, BRAID_SOURCE_DIR, path_.string());
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no python";
  std::string output;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, size);
  pclose(pipe);
  if (output.find("No module named 'jsonschema'") != std::string::npos) return std::nullopt;
  return output;
}

}  // namespace braid::test
