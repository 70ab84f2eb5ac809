// What a Go template is parsed into.
#pragma once

#include "braid/value.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace braid::text::go {

struct Pipeline;

// A value, and the fields that are taken of it one after the other.
struct Operand {
  enum class Kind { kLiteral, kDot, kVariable, kFunction, kPipeline };
  Kind kind = Kind::kLiteral;
  Value literal = {};
  std::string name = {};  // of a variable, with its "$", or of a function
  std::shared_ptr<const Pipeline> pipeline = {};
  std::vector<std::string> fields = {};
};

// A function and what it is called with, or one operand alone.
using Command = std::vector<Operand>;

// The value of each command is the last argument of the next one.
struct Pipeline {
  std::vector<std::string> variables = {};  // that get the value; two in a range: index and element
  bool declares = false;                    // with ":=", not "="
  std::vector<Command> commands = {};
  int line = 1;
};

struct Node;
using Nodes = std::vector<Node>;

struct Node {
  enum class Kind { kText, kAction, kIf, kWith, kRange, kBreak, kContinue, kTemplate };
  Kind kind = Kind::kText;
  int place = 0;           // in the order of the source
  std::size_t callee = 0;  // of kTemplate: which of Source::defined
  std::string text = {};
  Pipeline pipeline = {};
  Nodes body = {};
  Nodes otherwise = {};
};

struct Source {
  Nodes nodes = {};
  std::vector<Nodes> defined = {};  // with "define" or "block", by number
};

}  // namespace braid::text::go
