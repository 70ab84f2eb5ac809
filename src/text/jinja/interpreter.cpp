// Statements.
#include "text/jinja/interpreter.h"

#include "text/jinja/loop_variable.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text::jinja {

const Object* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent)
    for (const auto& [known, value] : scope->names)
      if (known == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Object value) {
  for (auto& [known, present] : names) {
    if (known != name) continue;
    present = std::move(value);
    return;
  }
  names.emplace_back(name, std::move(value));
}

Interpreter::ScopeGuard::ScopeGuard(Interpreter& interpreter, Scope& parent)
    : interpreter_(interpreter), outer_(interpreter.scope_), scope_(std::make_unique<Scope>()) {
  scope_->parent = &parent;
  interpreter_.scope_ = scope_.get();
}

Interpreter::ScopeGuard::~ScopeGuard() {
  interpreter_.scope_ = outer_;
  if (scope_->captured) interpreter_.captured_.push_back(std::move(scope_));
}

class Interpreter::Macro : public Callable {
 public:
  Macro(Interpreter& interpreter, const MacroDefinition& definition, Scope& closure)
      : interpreter_(interpreter), definition_(definition), closure_(closure) {}
  Object call(Runtime&, Call& arguments) override { return interpreter_.call_macro(definition_, closure_, arguments); }
  Object attribute(Runtime& runtime, std::string_view name) override { return name == "name" ? runtime.text(definition_.name) : Object(); }
  std::string describe() const override { return fmt::format("<Macro '{}'>", definition_.name); }

 private:
  Interpreter& interpreter_;
  const MacroDefinition& definition_;
  Scope& closure_;
};

Interpreter::Interpreter(Runtime& runtime, const Variables& variables) : runtime_(runtime) {
  for (const auto& [name, value] : variables) root_.set(name, value);
}

// Scopes and the values in them may refer to each other.
Interpreter::~Interpreter() {
  for (const auto& scope : captured_) scope->names.clear();
}

void Interpreter::run(const Block& program, std::string& out) {
  out_ = &out;
  execute(program);
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  for (const auto& statement : block) {
    runtime_.at_line(statement->line);
    if (!runtime_.step()) break;
    const Flow flow = execute(*statement);
    if (runtime_.failed()) break;
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::kText:
      write(statement.text);
      break;
    case Kind::kPrint:
      print(evaluate(*statement.expression));
      break;
    case Kind::kIf:
      return execute_if(statement);
    case Kind::kFor:
      execute_for(statement, evaluate(*statement.expression), 0);
      break;
    case Kind::kSet:
      assign(statement.target, evaluate(*statement.expression));
      break;
    case Kind::kSetBlock:
    case Kind::kFilterBlock: {
      Object text = runtime_.text(capture(statement.body));
      if (statement.expression != nullptr) {
        filter_input_ = std::move(text);
        text = evaluate(*statement.expression);
      }
      if (statement.kind == Kind::kSetBlock) {
        assign(statement.target, std::move(text));
      } else {
        print(text);
      }
      break;
    }
    case Kind::kMacro:
      scope_->set(statement.macro.name, make_macro(statement.macro));
      break;
    case Kind::kCallBlock:
      execute_call_block(statement);
      break;
    case Kind::kWith:
      return execute_with(statement);
    case Kind::kScope:
      return execute_scoped(statement.body);
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (const auto& branch : statement.branches) {
    const bool holds = evaluate(*branch.condition).truth();
    if (runtime_.failed()) return Flow::kNext;
    if (holds) return execute(branch.body);
  }
  return execute(statement.body);
}

Interpreter::Flow Interpreter::execute_scoped(const Block& block) {
  const ScopeGuard guard(*this, *scope_);
  return execute(block);
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement) {
  std::vector<Object> values;
  for (const auto& assignment : statement.assignments) values.push_back(evaluate(*assignment.value));
  const ScopeGuard guard(*this, *scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.assignments[i].target, std::move(values[i]));
  return execute(statement.body);
}

// All items, or those that pass the loop's condition.
std::vector<Object> Interpreter::loop_items(const Statement& statement, const Object& items) {
  auto all = runtime_.iterate(items);
  if (statement.condition == nullptr) return all;
  std::vector<Object> chosen;
  for (auto& item : all) {
    const ScopeGuard guard(*this, *scope_);
    assign(statement.target, item);
    if (evaluate(*statement.condition).truth()) chosen.push_back(std::move(item));
    if (runtime_.failed()) break;
  }
  return chosen;
}

void Interpreter::execute_for(const Statement& statement, const Object& items, int depth) {
  if (runtime_.failed()) return;
  auto loop = std::make_shared<LoopVariable>(loop_items(statement, items), depth, *this, statement, *scope_);
  if (statement.recursive) {  // the loop variable calls back into this scope
    for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
  }
  bool completed = false;  // Jinja runs the else branch unless some pass reached the end of the body
  while (loop->next() && runtime_.step()) {
    const ScopeGuard guard(*this, *scope_);
    scope_->set("loop", std::shared_ptr<Callable>(loop));
    assign(statement.target, loop->current());
    if (runtime_.failed()) return;
    const Flow flow = execute(statement.body);
    if (runtime_.failed()) return;
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  if (completed) return;
  const ScopeGuard guard(*this, *scope_);
  execute(statement.else_body);
}

Object Interpreter::run_loop_again(const Statement& loop, Scope& outer, const Object& items, int depth) {
  std::string text;
  std::string* const before = std::exchange(out_, &text);
  if (runtime_.enter()) {
    const ScopeGuard guard(*this, outer);
    execute_for(loop, items, depth);
  }
  runtime_.leave();
  out_ = before;
  return runtime_.text(std::move(text));
}

std::string Interpreter::capture(const Block& block) {
  std::string text;
  std::string* const before = std::exchange(out_, &text);
  execute_scoped(block);
  out_ = before;
  return text;
}

void Interpreter::print(const Object& value) {
  if (const auto* text = value.text()) return write(*text);
  write(runtime_.to_text(value));
}

void Interpreter::write(std::string_view text) {
  if (text.size() > runtime_.output_limit() - std::min(out_->size(), runtime_.output_limit())) {
    runtime_.fail("the text that the template makes is too long");
    return;
  }
  out_->append(text);
}

void Interpreter::assign(const Target& target, Object value) {
  if (!target.attribute.empty()) return assign_attribute(target, std::move(value));
  if (target.parts.empty()) return scope_->set(target.name, std::move(value));
  auto values = runtime_.iterate(value);
  if (values.size() != target.parts.size()) {
    runtime_.fail(fmt::format("{} values cannot be assigned to {} names", values.size(), target.parts.size()));
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) assign(target.parts[i], std::move(values[i]));
}

void Interpreter::assign_attribute(const Target& target, Object value) {
  const Object* owner = scope_->find(target.name);
  if (owner == nullptr || owner->name_space() == nullptr) {
    runtime_.fail(fmt::format("'{}' is no namespace, so its attribute '{}' cannot be set", target.name, target.attribute));
    return;
  }
  runtime_.set(owner->name_space()->members, Object::from_text(target.attribute), std::move(value));
}

Object Interpreter::make_macro(const MacroDefinition& macro) {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
  if (!runtime_.spend(sizeof(Macro) + sizeof(Scope))) return Undefined{};
  return std::shared_ptr<Callable>(std::make_shared<Macro>(*this, macro, *scope_));
}

void Interpreter::execute_call_block(const Statement& statement) {
  print(evaluate_call(*statement.expression, make_macro(statement.macro)));
}

Object Interpreter::call_macro(const MacroDefinition& macro, Scope& closure, Callable::Call& call) {
  std::string text;
  std::string* const before = std::exchange(out_, &text);
  if (runtime_.enter()) {
    const ScopeGuard guard(*this, closure);
    bind_parameters(macro, call);
    if (!runtime_.failed()) execute(macro.body);
  }
  runtime_.leave();
  out_ = before;
  return runtime_.text(std::move(text));
}

void Interpreter::bind_parameters(const MacroDefinition& macro, Callable::Call& call) {
  const auto take_named = [&](std::string_view name) -> Object {
    const auto it = std::find_if(call.named.begin(), call.named.end(), [&](const auto& named) { return named.first == name; });
    if (it == call.named.end()) return {};
    Object value = std::move(it->second);
    call.named.erase(it);
    return value;
  };
  const std::size_t positional = std::min(call.positional.size(), macro.parameters.size());
  bool explicit_caller = false;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& parameter = macro.parameters[i];
    explicit_caller = explicit_caller || parameter.name == "caller";
    Object value = i < positional ? std::move(call.positional[i]) : take_named(parameter.name);
    if (value.is_missing()) value = parameter.fallback != nullptr ? evaluate(*parameter.fallback) : Object(Undefined{&parameter.name});
    scope_->set(parameter.name, std::move(value));
  }
  if (macro.takes_caller && !explicit_caller) {
    static const std::string kCaller = "caller";
    Object caller = take_named(kCaller);
    scope_->set(kCaller, caller.is_missing() ? Object(Undefined{&kCaller}) : std::move(caller));
  }
  if (macro.takes_kwargs) {
    auto rest = std::make_shared<Dict>();
    for (auto& [name, value] : std::exchange(call.named, {})) runtime_.set(*rest, Object::from_text(name), std::move(value));
    scope_->set("kwargs", runtime_.dict(std::move(rest)));
  }
  call.positional.erase(call.positional.begin(), call.positional.begin() + static_cast<std::ptrdiff_t>(positional));
  if (macro.takes_varargs) {
    scope_->set("varargs", runtime_.sequence(std::exchange(call.positional, {}), Sequence::Kind::kTuple));
  }
  if (!call.positional.empty())
    runtime_.fail(fmt::format("macro '{}' takes not more than {} arguments", macro.name, macro.parameters.size()));
  if (!call.named.empty()) runtime_.fail(fmt::format("macro '{}' has no parameter '{}'", macro.name, call.named.front().first));
}

}  // namespace braid::text::jinja
