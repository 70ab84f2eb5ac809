// What one render shares between the interpreter and the functions that a template calls: its first error, what it may
// still spend, and the making of values, which is what is paid for. One render, one thread.
#pragma once

#include "braid/result.h"
#include "text/jinja/object.h"
#include "text/jinja/program.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::jinja {

class Runtime {
 public:
  explicit Runtime(const RenderLimits& limits) : steps_(limits.steps), bytes_(limits.bytes), output_bytes_(limits.output_bytes) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The first failure ends the render. Whoever fails goes on with the undefined value that this returns, and checks
  // failed() wherever that could take long.
  Object fail(std::string_view what);
  Object fail_undefined(const Object& value);  // fails because `value`, which is undefined, was used
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }
  void at_line(int line) { line_ = line; }

  bool step(std::size_t count = 1);  // false: out of steps, and failed
  bool spend(std::size_t bytes);     // false: out of memory to spend, and failed
  // Bounds the recursion of a render; false with a failure when it is too deep. Each call is paired with leave().
  bool enter();
  void leave() { --depth_; }
  std::size_t output_limit() const { return output_bytes_; }

  Object text(std::string value);
  Object sequence(std::vector<Object> items, Sequence::Kind kind = Sequence::Kind::kList);
  Object dict(std::shared_ptr<Dict> value);
  void set(Dict& members, Object key, Object value);
  // Namespaces and lists that a template changed can hold themselves: they live until the render ends, and are emptied then.
  void keep(const Object& mutable_value);

  // The items of whatever can be iterated; fails otherwise. A generator is empty afterwards.
  std::vector<Object> iterate(const Object& value);
  // len() of Python; fails for what has none.
  std::size_t length(const Object& value);
  // str() of Python.
  std::string to_text(const Object& value);
  bool equal(const Object& left, const Object& right);
  // -1, 0, 1; 2 with a failure for what has no order, without one for NaN.
  int order(const Object& left, const Object& right);
  // How large one more value may be.
  std::size_t bytes_left() const { return std::min(bytes_, output_bytes_); }
  // An integer or bool; fails for another type, naming `what` it was for.
  std::int64_t to_integer(const Object& value, std::string_view what);

 private:
  std::size_t steps_;
  std::size_t bytes_;
  std::size_t output_bytes_;
  int line_ = 1;
  int depth_ = 0;
  std::optional<Error> error_;
  std::vector<Object> kept_;
};

}  // namespace braid::text::jinja
