#include "text/jinja/loop_variable.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text::jinja {

// loop.cycle and loop.changed. They refer to the loop by the variable's own object, so that it lives long enough.
class LoopVariable::Method : public Callable {
 public:
  using Run = Object (*)(Runtime&, LoopVariable&, Call&);
  Method(std::shared_ptr<LoopVariable> loop, Run run) : loop_(std::move(loop)), run_(run) {}
  Object call(Runtime& runtime, Call& arguments) override { return run_(runtime, *loop_, arguments); }
  std::string describe() const override { return "<loop method>"; }
  int depth() const override { return loop_->depth(); }

 private:
  std::shared_ptr<LoopVariable> loop_;
  Run run_;
};

LoopVariable::LoopVariable(std::vector<Object> items, int depth, Interpreter& interpreter, const Statement& statement, Scope& outer)
    : items_(std::move(items)), depth_(depth), interpreter_(interpreter), statement_(statement), outer_(outer) {
  for (const auto& item : items_) value_depth_ = std::max(value_depth_, 1 + depth_of(item));
}

bool LoopVariable::next() { return ++index_ < items_.size(); }

Object LoopVariable::call(Runtime& runtime, Call& arguments) {
  if (!statement_.recursive) return runtime.fail("loop() needs a loop that is marked as recursive");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) return runtime.fail("loop() takes one argument");
  return interpreter_.run_loop_again(statement_, outer_, arguments.positional.front(), depth_ + 1);
}

Object LoopVariable::cycle(Runtime& runtime, LoopVariable& loop, Call& arguments) {
  if (arguments.positional.empty()) return runtime.fail("loop.cycle needs a value");
  return arguments.positional[loop.index_ % arguments.positional.size()];
}

Object LoopVariable::changed(Runtime& runtime, LoopVariable& loop, Call& arguments) {
  Object values = runtime.sequence(std::move(arguments.positional));
  const bool same = !loop.last_changed_.is_missing() && runtime.equal(loop.last_changed_, values);
  loop.last_changed_ = std::move(values);
  return !same;
}

Object LoopVariable::attribute(Runtime&, std::string_view name) {
  const auto index = static_cast<std::int64_t>(index_);
  const auto length = static_cast<std::int64_t>(items_.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 >= length;
  if (name == "length") return length;
  if (name == "depth") return std::int64_t{depth_} + 1;
  if (name == "depth0") return std::int64_t{depth_};
  if (name == "previtem") return index > 0 && index <= length ? items_[index_ - 1] : Object(Undefined{});
  if (name == "nextitem") return index + 1 < length ? items_[index_ + 1] : Object(Undefined{});
  if (name != "cycle" && name != "changed") return {};
  auto self = std::static_pointer_cast<LoopVariable>(shared_from_this());
  return std::shared_ptr<Callable>(std::make_shared<Method>(std::move(self), name == "cycle" ? cycle : changed));
}

std::string LoopVariable::describe() const { return fmt::format("<LoopContext {}/{}>", index_ + 1, items_.size()); }

}  // namespace braid::text::jinja
