// Functions that every template may call.
#include "text/jinja/native.h"

#include <ctime>
#include <fmt/format.h>
#include <memory>

namespace braid::text::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // Jinja's sandbox has the same

Object run_range(Runtime& runtime, Arguments& arguments) {
  const bool one = !arguments.given(1);
  const auto start = one ? 0 : runtime.to_integer(arguments[0], "the start of range");
  const auto stop = runtime.to_integer(arguments[one ? 0 : 1], "the end of range");
  const auto step = arguments.given(2) ? runtime.to_integer(arguments[2], "the step of range") : 1;
  if (step == 0) return runtime.fail("the step of range is zero");
  std::vector<Object> items;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (static_cast<std::int64_t>(items.size()) == kMaxRange) return runtime.fail(fmt::format("range is longer than {}", kMaxRange));
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  if (!runtime.step(items.size())) return Undefined{};
  return runtime.sequence(std::move(items), Sequence::Kind::kRange);
}

// dict() and namespace(): the members of a mapping, if one is given, then the named arguments.
void collect(Runtime& runtime, Arguments& arguments, Dict& members) {
  if (arguments.given(0)) {
    if (const auto* other = arguments[0].dict()) {
      for (const auto& [key, value] : other->items()) runtime.set(members, key, value);
    } else {
      for (const auto& pair : runtime.iterate(arguments[0])) {
        auto both = runtime.iterate(pair);
        if (both.size() != 2) {
          runtime.fail("expected a mapping or pairs");
          return;
        }
        runtime.set(members, std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) runtime.set(members, runtime.text(std::move(name)), std::move(value));
}

Object run_dict(Runtime& runtime, Arguments& arguments) {
  auto members = std::make_shared<Dict>();
  collect(runtime, arguments, *members);
  return runtime.dict(std::move(members));
}

Object run_namespace(Runtime& runtime, Arguments& arguments) {
  if (!runtime.spend(sizeof(Namespace))) return Undefined{};
  auto result = std::make_shared<Namespace>();
  collect(runtime, arguments, result->members);
  runtime.keep(result);
  if (result->members.depth > kMaxValueDepth) return runtime.fail("a namespace nests too deeply");
  return result;
}

Object run_raise(Runtime& runtime, Arguments& arguments) { return runtime.fail(runtime.to_text(arguments[0])); }

Object run_strftime(Runtime& runtime, Arguments& arguments) {
  const auto* format = arguments[0].text();
  if (format == nullptr || format->size() > 1000) return runtime.fail("strftime_now needs a short string");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::string out(format->size() * 16 + 64, '\0');
  out.resize(std::strftime(out.data(), out.size(), format->c_str(), &local));
  return runtime.text(std::move(out));
}

// Gives nothing the first time, then the separator.
class Joiner : public Callable {
 public:
  explicit Joiner(Object separator) : separator_(std::move(separator)) {}
  Object call(Runtime& runtime, Call&) override {
    if (used_) return separator_;
    used_ = true;
    return runtime.text("");
  }
  std::string describe() const override { return "<Joiner>"; }
  int depth() const override { return 1 + depth_of(separator_); }

 private:
  Object separator_;
  bool used_ = false;
};

Object run_joiner(Runtime& runtime, Arguments& arguments) {
  if (!runtime.spend(sizeof(Joiner))) return Undefined{};
  if (depth_of(arguments[0]) >= kMaxValueDepth) return runtime.fail("a joiner nests too deeply");
  return std::shared_ptr<Callable>(std::make_shared<Joiner>(arguments.given(0) ? arguments[0] : runtime.text(", ")));
}

constexpr Native kGlobals[] = {
    {"range", "start stop? step?", run_range}, {"dict", "mapping? **", run_dict},        {"namespace", "mapping? **", run_namespace},
    {"raise_exception", "message", run_raise}, {"strftime_now", "format", run_strftime}, {"joiner", "sep?", run_joiner},
};

}  // namespace

const Native* find_global(std::string_view name) { return find_in(kGlobals, name); }

}  // namespace braid::text::jinja
