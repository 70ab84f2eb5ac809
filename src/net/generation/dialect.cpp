#include "net/generation/dialect.h"

#include <fmt/format.h>

namespace braid::net {

std::string describe(const LongPrompt& prompt) {
  return fmt::format("This model's maximum context length is {} tokens. However, your prompt has {} tokens{}. Please reduce its length.",
                     prompt.context, prompt.tokens, prompt.answer ? ", and the answer needs at least one" : "");
}

}  // namespace braid::net
