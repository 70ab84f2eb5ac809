// Texts and the schemas that they must satisfy, for an independent validator: see validate.py.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>

namespace braid::test {

class SchemaJudge {
 public:
  SchemaJudge();
  ~SchemaJudge();
  SchemaJudge(const SchemaJudge&) = delete;
  SchemaJudge& operator=(const SchemaJudge&) = delete;

  // `left_out`: paths of keywords that do not count.
  void add(const std::string& schema, const std::string& text, std::span<const std::string> left_out = {});
  std::size_t size() const { return cases_; }

  // Once, at last. What the validator prints: "N sound" behind a report of every text that is not. nullopt where it is not installed.
  std::optional<std::string> verdict();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  std::size_t cases_ = 0;
};

}  // namespace braid::test
