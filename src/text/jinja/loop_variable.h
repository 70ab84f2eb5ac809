// The variable "loop" of a for statement.
#pragma once

#include "text/jinja/interpreter.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::text::jinja {

class LoopVariable : public Callable {
 public:
  // `depth` counts the recursive loops around this one. `statement` and `outer`, the scope around the loop, serve loop(...).
  LoopVariable(std::vector<Object> items, int depth, Interpreter& interpreter, const Statement& statement, Scope& outer);

  bool next();  // moves on to the next item; false behind the last
  const Object& current() const { return items_[index_]; }

  Object call(Runtime& runtime, Call& arguments) override;
  Object attribute(Runtime& runtime, std::string_view name) override;
  std::string describe() const override;
  int depth() const override { return value_depth_; }

 private:
  static Object cycle(Runtime& runtime, LoopVariable& loop, Call& arguments);
  static Object changed(Runtime& runtime, LoopVariable& loop, Call& arguments);
  class Method;

  std::vector<Object> items_;
  std::size_t index_ = static_cast<std::size_t>(-1);
  int depth_;
  int value_depth_ = 1;
  Object last_changed_;  // missing, or the arguments of the last changed() as a list
  Interpreter& interpreter_;
  const Statement& statement_;
  Scope& outer_;
};

}  // namespace braid::text::jinja
