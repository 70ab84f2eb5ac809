// A parsed template. Immutable: any number of threads may render it at once.
#pragma once

#include "braid/result.h"
#include "text/jinja/ast.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::jinja {

// What a render may cost before it fails: a template is data that came with a model, its input came from a client.
struct RenderLimits {
  std::size_t steps = 20'000'000;                    // expressions evaluated, statements run, items visited
  std::size_t bytes = std::size_t{512} << 20;        // of all values that the render makes, though many may be gone again
  std::size_t output_bytes = std::size_t{64} << 20;  // of the result, and of any one value
};

using Variables = std::vector<std::pair<std::string, Object>>;

class Program {
 public:
  // kInvalidArgument with line and construct.
  static Result<Program> parse(std::string_view source);

  Result<std::string> render(Variables variables, const RenderLimits& limits = {}) const;

 private:
  explicit Program(Block body) : body_(std::move(body)) {}
  Block body_;
};

}  // namespace braid::text::jinja
