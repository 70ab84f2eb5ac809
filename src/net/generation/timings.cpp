#include "net/generation/timings.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace braid::net {
namespace {

// `timed` of the tokens were made within the milliseconds.
void append_part(std::string& out, std::string_view name, std::int32_t tokens, std::int32_t timed, double ms) {
  fmt::format_to(std::back_inserter(out), R"(,"{0}_n":{1},"{0}_ms":{2:.3f},"{0}_per_token_ms":{3:.3f},"{0}_per_second":{4:.3f})", name,
                 tokens, ms, ms / std::max(timed, 1), ms > 0.0 ? 1000.0 * timed / ms : 0.0);
}

}  // namespace

void append_timings(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out), R"(,"timings":{{"queue_ms":{:.3f},"cache_n":{})", usage.queue_ms, usage.cached_tokens);
  const std::int32_t computed = usage.prompt_tokens - usage.cached_tokens;
  append_part(out, "prompt", computed, computed, usage.prompt_ms);
  append_part(out, "predicted", usage.completion_tokens, std::max(usage.completion_tokens - 1, 0),
              usage.generation_ms);  // from the first on
  if (const std::int32_t drafted = usage.accepted_drafts + usage.rejected_drafts; drafted > 0)
    fmt::format_to(std::back_inserter(out), R"(,"draft_n":{},"draft_n_accepted":{})", drafted, usage.accepted_drafts);
  out += '}';
}

}  // namespace braid::net
