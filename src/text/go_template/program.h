// A Go template that can be executed.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "text/go_template/ast.h"

#include <string>
#include <string_view>
#include <utility>

namespace braid::text::go {

// Immutable after parse: any thread.
//
// Fields of objects are found by their own names or, as Go's of Ollama's messages and tools, by the JSON names that these have: ".ToolCalls" is
// "tool_calls". What is not there is nil, which is written as nothing.
class Program {
 public:
  // kInvalidArgument with the line.
  static Result<Program> parse(std::string_view source);

  // `root`: what "." and "$" are at first.
  Result<std::string> execute(Value root) const;
  // Nothing that stands behind the first action that takes the field, not as a condition; everything where there is none.
  Result<std::string> execute_up_to(Value root, std::string_view field) const;

  // Whether it takes a field of this name anywhere.
  bool mentions(std::string_view field) const;
  // Writes the field at its end, too.
  void append_action(std::string field);

 private:
  explicit Program(Source source) : source_(std::move(source)) {}

  Source source_;
};

}  // namespace braid::text::go
