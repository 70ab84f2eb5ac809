// A Go template that can be executed.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "text/go_template/ast.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace braid::text::go {

// Immutable after parse: any thread.
//
// Fields of objects are found by their own names or, as Go's of Ollama's messages and tools, by the JSON names that these have: ".ToolCalls" is
// "tool_calls". What is not there is nil, which is written as nothing.
class Program {
 public:
  static constexpr int kWhole = std::numeric_limits<int>::max();

  // kInvalidArgument with the line.
  static Result<Program> parse(std::string_view source);

  // `root`: what "." and "$" are at first. Nothing is executed that stands behind the node with the place `last`.
  Result<std::string> execute(Value root, int last = kWhole) const;

  // Whether it takes a field of this name anywhere.
  bool mentions(std::string_view field) const;
  // Where the first action is that takes it, not as a condition; none: there is no such action.
  std::optional<int> first_action_with(std::string_view field) const;
  // Writes the field at its end, too.
  void append_action(std::string field);

 private:
  explicit Program(Nodes nodes) : nodes_(std::move(nodes)) {}

  Nodes nodes_;
};

}  // namespace braid::text::go
