#include "net/generation/running_choices.h"

#include <optional>
#include <utility>

namespace braid::net {
RunningChoices::RunningChoices(const boost::asio::any_io_executor& executor, std::vector<Ticket> tickets, const TextCodec& codec,
                               const GenerationCall& call, Service& service, access::Visit& visit, UsageMeter& meter)
    : running_(tickets.size()), streams_(executor, std::move(tickets)), meter_(meter), visit_(visit) {
  meter_.time_every_token(call.timings || service.options.metrics || service.log.traces != nullptr);
  const auto candidates = static_cast<std::size_t>(call.candidates);
  for (std::size_t i = 0; i < running_; ++i)
    choices_.push_back({ChoiceText(codec, call, service.new_seed()), ChoiceUsage{.counts_prompt = i % candidates == 0}});
}

Ended RunningChoices::take(ChoiceEvent&& event) {
  if (auto* token = std::get_if<Token>(&event.event)) return take_token(event.choice, std::move(*token));
  if (auto* finish = std::get_if<Finish>(&event.event)) return take_finish(event.choice, *finish);
  if (auto* prompt = std::get_if<PromptTokens>(&event.event)) choices_[event.choice].text.add_prompt(std::move(*prompt));
  if (auto* pooled = std::get_if<PooledVector>(&event.event)) choices_[event.choice].vector = std::move(pooled->values);
  return {};
}

Ended RunningChoices::take_token(std::uint32_t choice, Token&& token) {
  auto& [text, usage, vector] = choices_[choice];
  meter_.add_token(usage, streams_, choice);
  visit_.take_generated(1);
  const std::int32_t reasoning_before = text.reasoning_tokens();
  std::optional<ChoiceEnd> end = text.add(std::move(token));
  meter_.add_reasoning(text.reasoning_tokens() - reasoning_before);
  if (!end) return {};
  meter_.add_drafts(streams_.drafts(choice));
  meter_.set_cached(usage, streams_.complete(choice));
  meter_.count_end(false);
  --running_;
  return std::move(*end);
}

Ended RunningChoices::take_finish(std::uint32_t choice, const Finish& finish) {
  auto& [text, usage, vector] = choices_[choice];
  --running_;
  meter_.take_finish(usage, finish.usage);
  if (finish.reason == FinishReason::kError || finish.reason == FinishReason::kCancelled) return failure_of(finish);
  meter_.count_end(finish.reason == FinishReason::kLength);
  return text.finish(finish.reason);
}

}  // namespace braid::net
