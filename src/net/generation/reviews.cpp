#include "net/generation/reviews.h"

#include "net/generation/prompts.h"
#include "net/generation/submission.h"
#include "net/service/asked_model.h"

#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

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

Result<Reviewers> find_reviewers(const ServiceStatus& status, const GenerationCall& call, const ModelHold& model) {
  Reviewers reviewers;
  for (const Review& review : call.reviews) {
    if (review.model.empty()) {
      reviewers.models.push_back(model);
      continue;
    }
    Result<ModelHold> other = take_model(status, {.name = review.model});
    if (!other) return other.error();
    if (*other == nullptr || (*other)->engine != model->engine)
      return invalid_argument(
          fmt::format("'{}' is neither the model that answers nor an adapter of it: its tokens may be others", review.model), review.field);
    reviewers.models.push_back(std::move(*other));
  }
  if (!call.reviews.empty()) reviewers.reservation = model->engine->reserve();
  return reviewers;
}

Result<std::vector<Ticket>> submit_reviews(const Reviewers& reviewers, const GenerationCall& call, const std::string& id,
                                           std::span<const ChoiceAnswer> choices, access::Visit& visit) {
  std::vector<GenerationRequest> requests;
  std::size_t tokens = 0;
  const std::size_t total = choices.size() * reviewers.models.size();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::vector<TokenId>& prompt = call.prompt_tokens[i / static_cast<std::size_t>(call.choices)];
    for (std::size_t review = 0; review < reviewers.models.size(); ++review) {
      requests.push_back(review_of(call, call.reviews[review], *reviewers.models[review], prompt, choices[i].piece.tokens.ids));
      requests.back().reservation = reviewers.reservation;
      requests.back().id = choice_id(id, requests.size() - 1, total);
      tokens += requests.back().prompt.size();
    }
  }
  return submit_all(*reviewers.models.front(), visit, std::move(requests), tokens);
}

RunningReviews::RunningReviews(const asio::any_io_executor& executor, std::vector<Ticket> tickets)
    : answers_(tickets.size()), running_(tickets.size()), streams_(executor, std::move(tickets)) {}

asio::awaitable<std::optional<Failure>> RunningReviews::run(std::function<bool()> goes_on) {
  std::optional<Failure> failure;
  while (!failure && running_ > 0 && goes_on()) {
    std::optional<ChoiceEvent> event = streams_.try_next();
    if (event) {
      failure = take(std::move(*event));
    } else {
      co_await streams_.arrived().wait();
    }
  }
  co_return failure;
}

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
