#include "net/anthropic/count_tokens.h"

#include "net/anthropic/request.h"
#include "net/generation/prompts.h"

#include <fmt/format.h>

namespace braid::net::anthropic {

Result<std::string> count_tokens(Value& body, const ServedModel& model) {
  Result<Wish> wish = read_count(body, model);
  if (!wish) return wish.error();
  GenerationCall call(std::move(*wish));
  const auto prompts = encode_prompts(*model.codec, call);
  if (!prompts) return prompts.error();
  return fmt::format(R"({{"input_tokens":{}}})", prompts->front().size());
}

}  // namespace braid::net::anthropic
