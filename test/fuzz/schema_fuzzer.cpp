// What requests constrain answers with → automaton → masks. The input is a JSON schema; after '/' a regular expression, after '#' a
// grammar. Refusals must name a path; of what is accepted a walk through the masks must never come to a dead end.
#include "fuzz/require.h"
#include "grammar/walk.h"
#include "net/json/parse.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

namespace {

using namespace braid;
using test::require;

std::optional<ConstraintSpec> read(std::string input) {
  const char kind = input.empty() ? '\0' : input.front();
  if (kind == '/') return ConstraintSpec{ConstraintSpec::Regex{input.substr(1)}, "spec"};
  if (kind == '#') return ConstraintSpec{ConstraintSpec::Grammar{input.substr(1)}, "spec"};
  auto schema = net::json::parse(input);
  if (!schema) return std::nullopt;
  return ConstraintSpec{ConstraintSpec::JsonSchema{std::move(*schema)}, "spec"};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t kMostBytes = 4096;
  constexpr std::size_t kFreeTokens = 20;
  if (size > kMostBytes) return 0;
  const auto spec = read(std::string(reinterpret_cast<const char*>(bytes), size));
  if (!spec) return 0;
  const auto constraint = test::toy_compiler().compile(*spec);
  if (!constraint) {
    require(constraint.error().code == ErrorCode::kInvalidArgument && constraint.error().param.starts_with("spec"));
    require(constraint.error().message.starts_with("spec"));
    return 0;
  }
  std::mt19937 random(1);
  test::Walk walk = test::random_walk(**constraint, random, kFreeTokens, 2 * kFreeTokens);
  const bool is_schema = std::holds_alternative<ConstraintSpec::JsonSchema>(spec->kind);
  require(!walk.ended || !is_schema || net::json::parse(walk.text));
  return 0;
}
