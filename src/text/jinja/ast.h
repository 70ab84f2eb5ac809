// The syntax tree of a template. Immutable once parsed; names live in it as long as the program does.
#pragma once

#include "text/jinja/object.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Argument {
  enum class Kind : std::uint8_t { kPositional, kNamed, kSpreadList, kSpreadDict };
  Kind kind = Kind::kPositional;
  std::string name;
  ExpressionPtr value;
};

enum class Operator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

// One node; what each kind uses is said beside it.
struct Expression {
  enum class Kind : std::uint8_t {
    kConstant,   // value
    kName,       // name
    kAttribute,  // operands[0].name
    kSubscript,  // operands[0][operands[1]]
    kSlice,      // operands[0][operands[1]:operands[2]:operands[3]], any of these may be null
    kCall,       // operands[0](arguments)
    kFilter,     // operands[0] | name(arguments); operands[0] is null in a filter block
    kTest,       // operands[0] is name(arguments)
    kNot,
    kNegate,
    kPositive,  // operands[0]
    kAnd,
    kOr,           // operands[0], operands[1]
    kBinary,       // operands[0] op operands[1]
    kCompare,      // operands[0] operators[0] operands[1] operators[1] operands[2] ...
    kConditional,  // operands[1] if operands[0] else operands[2], which may be null
    kList,
    kTuple,  // operands
    kDict,   // operands: key, value, key, value, ...
  };
  Kind kind;
  int line;
  int height = 1;  // of the tree below: bounds recursion
  Object value;
  std::string name;
  Operator op = Operator::kAdd;
  std::vector<ExpressionPtr> operands;
  std::vector<Operator> operators;
  std::vector<Argument> arguments;
};

// Where an assignment goes: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;      // of the namespace `name`; empty for a plain name
  std::vector<Target> parts;  // not empty for a tuple
};

struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // null: the parameter is undefined unless given
};

// A macro, or the body of a call block.
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool takes_varargs = false;  // the body names varargs, kwargs or caller
  bool takes_kwargs = false;
  bool takes_caller = false;
};

struct Statement {
  enum class Kind : std::uint8_t {
    kText,         // text
    kPrint,        // expression
    kIf,           // branches; body is the else
    kFor,          // target, expression, condition, body, else_body, recursive
    kSet,          // target, expression
    kSetBlock,     // target, filters (or null), body
    kMacro,        // macro
    kCallBlock,    // expression (a call), macro is the caller
    kFilterBlock,  // expression (a filter chain), body
    kWith,         // assignments, body
    kScope,        // body in a scope of its own
    kBreak,
    kContinue,
  };
  struct Branch {
    ExpressionPtr condition;
    Block body;
  };
  struct Assignment {
    Target target;
    ExpressionPtr value;
  };

  Kind kind;
  int line;
  std::string text;
  ExpressionPtr expression;
  ExpressionPtr condition;
  Target target;
  std::vector<Branch> branches;
  std::vector<Assignment> assignments;
  Block body;
  Block else_body;
  bool recursive = false;
  MacroDefinition macro;
};

}  // namespace braid::text::jinja
