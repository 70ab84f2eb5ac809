#include "files/python_json.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace braid::files {
namespace {

TEST(PythonJson, WhatSimdjsonRefusesIsReplaced) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a": 1000000000000000019884624838656})", R"({"a": 1000000000000000019884624838656e0})"},
      {"[18446744073709551616,-9223372036854775809]", "[18446744073709551616e0,-9223372036854775809e0]"},
      {R"({"time_step_limit": [0.0, Infinity]})", R"({"time_step_limit": [0.0, 1e308]})"},
      {"[-Infinity, 1]", "[-1e308, 1]"},
      {"Infinity", "1e308"},
  };
  for (const auto& [text, plain] : cases) EXPECT_EQ(plain_json(text), plain);
}

TEST(PythonJson, AllElseStaysAsItIs) {
  for (const std::string text :
       {R"([18446744073709551615, -9223372036854775808, 1e400, -0, 0.1234567890123456789012, true, null])",
        R"({"NaN": "Infinity \" 123456789012345678901234567890 \\", "a": "NaN"})", R"(["1000000000000000019884624838656"])", "", "[", "\"",
        "\"\\", "\"a\\\"", "[NaN, Infinity1, --1, 1000000000000000019884624838656x]"})
    EXPECT_EQ(plain_json(text), text);
}

}  // namespace
}  // namespace braid::files
