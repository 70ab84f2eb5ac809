#include "sched/admission.h"

#include <fmt/format.h>

#include <algorithm>

namespace braid::sched {

namespace {

constexpr std::int32_t kBestPriority = -100;
constexpr std::int32_t kWorstPriority = 100;

}  // namespace

Result<std::int32_t> answer_room(const Request& request, const SchedulerOptions& options) {
  if (request.prompt.empty()) return invalid_argument("the prompt is empty", "prompt");
  if (request.priority < kBestPriority || request.priority > kWorstPriority)
    return invalid_argument(fmt::format("priority must be from {} to {}, not {}", kBestPriority, kWorstPriority, request.priority), "priority");
  if (request.stop.max_tokens < 0) return invalid_argument("max_tokens must be at least 0", "max_tokens");
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t context = options.context_length;
  if (prompt + std::min(request.stop.max_tokens, 1) > context) {
    return Error{ErrorCode::kContextLength,
                 fmt::format("the prompt has {} tokens, but the context holds {}, the answer included; shorten the prompt", prompt, context),
                 "prompt"};
  }
  const std::int64_t pool = std::int64_t{options.blocks} * options.block_tokens;
  if (prompt > pool) {
    return invalid_argument(fmt::format("the prompt has {} tokens, but the KV memory of this server holds {}; shorten the prompt or raise "
                                        "--kv-memory", prompt, pool), "prompt");
  }
  const std::int64_t room = std::min(context - prompt, pool - prompt + 1);
  return static_cast<std::int32_t>(std::min<std::int64_t>(request.stop.max_tokens, room));
}

}  // namespace braid::sched
