#include "net/generation/reviews.h"

#include "net/generation/prompts.h"

#include <iterator>
#include <utility>

namespace braid::net {
namespace {

GenerationRequest review_of(const GenerationCall& call, const Review& review, const ServedModel& model, std::vector<TokenId> prompt,
                            const std::vector<TokenId>& answer) {
  GenerationRequest request;
  const auto before = static_cast<std::int32_t>(prompt.size());
  request.prompt = std::move(prompt);
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  request.stop.max_tokens = 0;
  request.adapter = model.adapter;
  request.client = call.client;
  request.cache_salt = call.cache_salt;
  request.priority = call.priority.value_or(0);
  request.speculation = {.method = DraftMethod::kOff};
  if (review.what == Review::What::kLogprobs) {
    request.prompt_logprobs = 0;
  } else {
    request.pooling = Pooling::kEach;
    request.pooled_from = before - 1;  // the state in which the first token was chosen
    request.pooled_output = review.what == Review::What::kScores ? PooledOutput::kScores : PooledOutput::kVector;
  }
  return request;
}

}  // namespace

std::vector<GenerationRequest> review_requests(const GenerationCall& call, const std::string& id, std::span<const ModelHold> models,
                                               std::span<const ChoiceAnswer> choices) {
  std::vector<GenerationRequest> requests;
  const std::size_t total = choices.size() * models.size();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::vector<TokenId>& prompt = call.prompt_tokens[i / static_cast<std::size_t>(call.choices)];
    for (std::size_t review = 0; review < models.size(); ++review) {
      requests.push_back(review_of(call, call.reviews[review], *models[review], prompt, choices[i].piece.tokens.ids));
      requests.back().id = choice_id(id, requests.size() - 1, total);
    }
  }
  return requests;
}

RunningReviews::RunningReviews(const boost::asio::any_io_executor& executor, std::vector<Ticket> tickets)
    : answers_(tickets.size()), running_(tickets.size()), streams_(executor, std::move(tickets)) {}

std::optional<Failure> RunningReviews::take(ChoiceEvent&& event) {
  ReviewAnswer& answer = answers_[event.choice];
  if (auto* prompt = std::get_if<PromptTokens>(&event.event))
    answer.tokens.insert(answer.tokens.end(), std::make_move_iterator(prompt->tokens.begin()),
                         std::make_move_iterator(prompt->tokens.end()));
  if (auto* pooled = std::get_if<PooledVector>(&event.event)) answer.values = std::move(pooled->values);
  const auto* finish = std::get_if<Finish>(&event.event);
  if (finish == nullptr) return std::nullopt;
  --running_;
  if (finish->reason == FinishReason::kError || finish->reason == FinishReason::kCancelled) return failure_of(*finish);
  return std::nullopt;
}

void RunningReviews::move_to(std::span<ChoiceAnswer> choices) {
  const std::size_t each = answers_.size() / choices.size();
  for (std::size_t i = 0; i < answers_.size(); ++i) choices[i / each].reviews.push_back(std::move(answers_[i]));
}

}  // namespace braid::net
