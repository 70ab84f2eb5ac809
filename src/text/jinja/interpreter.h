// Walks the syntax tree of a program. One render, one thread.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::jinja {

// The names of one block; what is set inside is not seen outside. A macro sees the scope in which it was made, so such a
// scope and those around it stay until the render ends.
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;
  std::vector<std::pair<std::string_view, Object>> names;

  const Object* find(std::string_view name) const;  // here or further out; null when nowhere
  void set(std::string_view name, Object value);    // here
};

class Interpreter {
 public:
  Interpreter(Runtime& runtime, const Variables& variables);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Appends to `out`; what went wrong is in the runtime.
  void run(const Block& program, std::string& out);

  // For the functions that a template makes.
  Object call_macro(const MacroDefinition& macro, Scope& closure, Callable::Call& call);
  Object run_loop_again(const Statement& loop, Scope& outer, const Object& items, int depth);

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };
  class ScopeGuard;
  class Macro;

  Flow execute(const Block& block);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_scoped(const Block& block);
  Flow execute_with(const Statement& statement);
  void execute_for(const Statement& statement, const Object& items, int depth);
  std::vector<Object> loop_items(const Statement& statement, const Object& items);
  void execute_call_block(const Statement& statement);
  std::string capture(const Block& block);
  void print(const Object& value);
  void write(std::string_view text);
  void assign(const Target& target, Object value);
  void assign_attribute(const Target& target, Object value);
  void bind_parameters(const MacroDefinition& macro, Callable::Call& call);
  Object make_macro(const MacroDefinition& macro);

  Object evaluate(const Expression& expression);
  Object evaluate_kind(const Expression& expression);
  Object evaluate_name(const Expression& expression);
  Object evaluate_subscript(const Expression& expression);
  Object evaluate_compare(const Expression& expression);
  Object evaluate_conditional(const Expression& expression);
  Object evaluate_collection(const Expression& expression);
  Object evaluate_dict(const Expression& expression);
  Object evaluate_call(const Expression& expression, Object caller = {});
  Object evaluate_filter(const Expression& expression);
  Object evaluate_test(const Expression& expression);
  Object optional(const ExpressionPtr& expression) { return expression == nullptr ? Object() : evaluate(*expression); }
  void evaluate_arguments(const std::vector<Argument>& arguments, Callable::Call& call);

  Runtime& runtime_;
  Scope root_;
  Scope* scope_ = &root_;
  std::string* out_ = nullptr;
  Object filter_input_;  // what the innermost filter of a filter block works on
  std::vector<std::unique_ptr<Scope>> captured_;
};

// Makes a scope inside the current one for as long as it lives.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope& parent);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace braid::text::jinja
