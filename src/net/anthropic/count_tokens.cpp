#include "net/anthropic/count_tokens.h"

#include "net/anthropic/request.h"
#include "net/generation/prompts.h"

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <utility>

namespace braid::net::anthropic {

Result<TextAnswer> count_tokens(Value& body, const ServedModel& model) {
  Result<Wish> wish = read_count(body, model);
  if (!wish) return wish.error();
  GenerationCall call(std::move(*wish));
  const auto prompts = encode_prompts(model, call);
  if (!prompts) return prompts.error();
  auto tokens = static_cast<std::int64_t>(prompts->front().size());
  std::string answer = fmt::format(R"({{"input_tokens":{})", tokens);
  const auto& edits = std::static_pointer_cast<const MessageDetails>(call.details)->applied_edits;
  for (std::size_t i = 0; edits && i < edits->size(); ++i) tokens += (*edits)[i].tokens;
  if (edits) answer += fmt::format(R"(,"context_management":{{"original_input_tokens":{}}})", tokens);
  return TextAnswer{answer + "}", std::move(call.tools_left_out)};
}

}  // namespace braid::net::anthropic
