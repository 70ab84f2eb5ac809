#include "text/jinja/native.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

class NativeCallable : public Callable {
 public:
  NativeCallable(const Native& native, Object self) : native_(native), self_(std::move(self)) {}
  Object call(Runtime& runtime, Call& arguments) override {
    if (!self_.is_missing()) arguments.positional.insert(arguments.positional.begin(), self_);
    return run_native(runtime, native_, std::move(arguments));
  }
  std::string describe() const override { return fmt::format("<function {}>", native_.name); }
  int depth() const override { return 1 + depth_of(self_); }

 private:
  const Native& native_;
  Object self_;
};

class Binder {
 public:
  Binder(Runtime& runtime, const Native& native, Callable::Call& call) : runtime_(runtime), native_(native), call_(call) {}

  bool bind(Arguments& bound) {
    std::string_view left = native_.parameters;
    while (!left.empty() && !runtime_.failed()) {
      const auto space = std::min(left.find(' '), left.size());
      bind_one(left.substr(0, space), bound);
      left.remove_prefix(std::min(space + 1, left.size()));
    }
    if (next_ < call_.positional.size()) runtime_.fail(fmt::format("{} got too many arguments", native_.name));
    if (!call_.named.empty()) runtime_.fail(fmt::format("{} has no argument '{}'", native_.name, call_.named.front().first));
    return !runtime_.failed();
  }

 private:
  void bind_one(std::string_view parameter, Arguments& bound) {
    if (parameter == "*") {
      const auto first = call_.positional.begin() + static_cast<std::ptrdiff_t>(std::min(next_, call_.positional.size()));
      bound.rest.assign(first, call_.positional.end());
      next_ = call_.positional.size();
    } else if (parameter == "**") {
      bound.named = std::exchange(call_.named, {});
    } else {
      const bool optional = parameter.back() == '?';
      if (optional) parameter.remove_suffix(1);
      Object value = take(parameter);
      if (value.is_missing() && !optional) runtime_.fail(fmt::format("{} needs the argument '{}'", native_.name, parameter));
      bound.values.push_back(std::move(value));
    }
  }

  Object take(std::string_view name) {
    if (next_ < call_.positional.size()) return std::move(call_.positional[next_++]);
    const auto it = std::find_if(call_.named.begin(), call_.named.end(), [&](const auto& named) { return named.first == name; });
    if (it == call_.named.end()) return {};
    Object value = std::move(it->second);
    call_.named.erase(it);
    return value;
  }

  Runtime& runtime_;
  const Native& native_;
  Callable::Call& call_;
  std::size_t next_ = 0;
};

}  // namespace

Object run_native(Runtime& runtime, const Native& native, Callable::Call&& call) {
  Arguments bound;
  if (!Binder(runtime, native, call).bind(bound)) return Undefined{};
  Object result = runtime.enter() ? native.run(runtime, bound) : Object(Undefined{});
  runtime.leave();
  return result;
}

Object make_callable(const Native& native, Object self) {
  return std::shared_ptr<Callable>(std::make_shared<NativeCallable>(native, std::move(self)));
}

}  // namespace braid::text::jinja
