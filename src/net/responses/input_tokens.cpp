#include "net/responses/input_tokens.h"

#include "net/generation/call.h"
#include "net/generation/prompts.h"
#include "net/generation/turns.h"
#include "net/responses/request.h"

#include <fmt/format.h>
#include <utility>

namespace braid::net::responses {

Result<TextAnswer> input_tokens(Value& body, const ServedModel& model, const Shelf& shelf) {
  Result<Wish> wish = read_response(body, model, shelf);
  if (!wish) return wish.error();
  GenerationCall call(std::move(*wish));
  const auto prompts = call.drops_oldest_turns ? encode_last_turns(model, call) : encode_prompts(model, call);
  if (!prompts) return prompts.error();
  return TextAnswer{fmt::format(R"({{"object":"response.input_tokens","input_tokens":{}}})", prompts->front().size()),
                    std::move(call.tools_left_out)};
}

}  // namespace braid::net::responses
