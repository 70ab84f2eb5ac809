// What a client wants cleared of a conversation before the model reads it. Specification: Anthropic's "Context editing".
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::net::anthropic {

struct ClearToolUses {
  std::optional<std::int64_t> trigger_tokens;  // of the whole prompt; nullopt with the next one
  std::int64_t trigger_uses = 0;
  std::int64_t keep = 3;  // the last uses
  std::int64_t at_least_tokens = 0;
  std::vector<std::string> spared;  // tools
  bool all_inputs = false;
  std::vector<std::string> inputs;  // tools whose calls lose their input too
};

struct ClearThinking {
  std::optional<std::int64_t> keep = 1;  // the last turns that think; nullopt: all
};

using ContextEdit = std::variant<ClearToolUses, ClearThinking>;

struct AppliedEdit {
  std::string_view type;
  std::string_view counted;  // the name of what `cleared` counts
  std::int64_t cleared = 0;
  std::int64_t tokens = 0;
};

// {"edits":[{"type":…},…]}. Other edits are left out, and their types appended to `left_out`.
Result<std::vector<ContextEdit>> read_context_edits(const Value& value, const std::string& path, std::vector<std::string>& left_out);

// The tokens of the prompt that these chat messages make.
using CountTokens = std::function<Result<std::int64_t>(const ValueList& messages)>;

// Changes the contents of chat messages, none of which is added or taken away. Those edits that have cleared something.
Result<std::vector<AppliedEdit>> apply_edits(const std::vector<ContextEdit>& edits, ValueList& messages, const CountTokens& count);

}  // namespace braid::net::anthropic
