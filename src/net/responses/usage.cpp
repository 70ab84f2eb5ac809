#include "net/responses/usage.h"

#include <fmt/format.h>
#include <iterator>

namespace braid::net::responses {

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{},"cache_write_tokens":0}},"output_tokens":{},)"
                 R"("output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}})",
                 usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens,
                 usage.prompt_tokens + usage.completion_tokens);
}

}  // namespace braid::net::responses
