#include "text/jinja/program.h"

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace braid::text::jinja {

Result<Program> Program::parse(std::string_view source) {
  auto tokens = tokenize(source);
  if (!tokens) return tokens.error();
  auto body = Parser(std::move(*tokens)).run();
  if (!body) return body.error();
  return Program(std::move(*body));
}

Result<std::string> Program::render(Variables variables, const RenderLimits& limits) const {
  Runtime runtime(limits);
  std::string out;
  {
    Interpreter interpreter(runtime, variables);
    interpreter.run(body_, out);
  }
  if (runtime.error()) return *runtime.error();
  return out;
}

}  // namespace braid::text::jinja
