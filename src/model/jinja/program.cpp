#include "model/jinja/program.h"

#include "model/jinja/interpreter.h"
#include "model/jinja/parser.h"

namespace braid::model::jinja {

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

}  // namespace braid::model::jinja
