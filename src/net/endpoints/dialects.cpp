#include "net/endpoints/dialects.h"

#include "net/anthropic/dialect.h"
#include "net/openai/dialects.h"
#include "net/responses/dialect.h"

namespace braid::net {

Dialects::Dialects()
    : completions(openai::completions()), chat_completions(openai::chat_completions()), perplexity(openai::perplexity()),
      responses(responses::responses(stored_responses)), messages(anthropic::messages()) {}

}  // namespace braid::net
