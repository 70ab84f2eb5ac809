#include "sched/limits.h"

#include "sched/groups.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace braid::sched {

namespace {

constexpr std::int32_t kBestPriority = -100;
constexpr std::int32_t kWorstPriority = 100;
constexpr double kMostSeconds = 3600.0;

}  // namespace

std::chrono::seconds time_to_drain(const Roster& roster, const MeasuredRates& rates) {
  double prompt = 0.0;
  double answers = 0.0;
  for (const SequenceMap* map : roster.all()) {
    for (const auto& [rank, sequence] : *map) {
      if (sequence.phase == SequencePhase::kDone || sequence.is_stalled()) continue;
      prompt += sequence.known() - sequence.progress.least();
      answers += std::clamp(rates.answer_tokens - sequence.generated(), 1.0, static_cast<double>(sequence.stop.max_tokens) + 1.0);
    }
  }
  const double seconds = (rates.prefill > 0.0 ? prompt / rates.prefill : 0.0) + (rates.decode > 0.0 ? answers / rates.decode : 0.0);
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 1.0, kMostSeconds))));
}

Result<std::int32_t> answer_room(const GenerationRequest& request, const SchedulerOptions& options) {
  if (request.prompt.empty()) return invalid_argument("the prompt is empty", "prompt");
  if (request.priority < kBestPriority || request.priority > kWorstPriority)
    return invalid_argument(fmt::format("priority must be from {} to {}, not {}", kBestPriority, kWorstPriority, request.priority),
                            "priority");
  if (request.stop.max_tokens < 0) return invalid_argument("max_tokens must be at least 0", "max_tokens");
  if (request.pooling != Pooling::kNone && request.prompt_logprobs >= 0)
    return invalid_argument("a request for a vector gives no log-probabilities", "prompt_logprobs");
  if (request.pooling == Pooling::kEach && (request.pooled_from < 0 || std::cmp_greater_equal(request.pooled_from, request.prompt.size())))
    return invalid_argument("the first token whose vector is wanted is none of the prompt's", "prompt");
  const std::int32_t wanted = request.pooling == Pooling::kNone ? request.stop.max_tokens : 0;
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t context = options.context_length;
  if (prompt + std::min(wanted, 1) > context) {
    return Error{
        ErrorCode::kContextLength,
        fmt::format("the prompt has {} tokens, but the context holds {}, the answer included; shorten the prompt", prompt, context),
        "prompt"};
  }
  const Groups groups(options.groups, options.block_tokens, options.state_blocks);
  const std::int64_t pool = groups.most_places(options.blocks) * options.block_tokens;
  if (prompt > pool) {
    return invalid_argument(fmt::format("the prompt has {} tokens, but the KV memory of this server holds {}; shorten the prompt or raise "
                                        "--kv-memory",
                                        prompt, pool),
                            "prompt");
  }
  const std::int64_t room = std::min(context - prompt, pool - prompt + 1);
  return static_cast<std::int32_t>(std::min<std::int64_t>(wanted, room));
}

}  // namespace braid::sched
