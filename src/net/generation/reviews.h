// What a model is asked about whole answers before they are told: log-probabilities, vectors and scores of their tokens.
#pragma once

#include "braid/engine.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/access/account.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/generation/choice_streams.h"
#include "net/generation/failure.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::net {

// By whom a call's answers are reviewed, once they are there.
struct Reviewers {
  std::vector<ModelHold> models;                 // one for each of the call's reviews: the model that answers, or it with other adapters
  std::shared_ptr<const void> reservation = {};  // of their engine, so that what is computed by then is not in vain
};

// Before the call is submitted. Loop only. `model` is that of the call. kInvalidArgument: another model was named.
Result<Reviewers> find_reviewers(const ServiceStatus& status, const GenerationCall& call, const ModelHold& model);

// A ticket for each choice and review of it, of its prompt and all of its tokens. `id` is the answer's. Loop only.
Result<std::vector<Ticket>> submit_reviews(const Reviewers& reviewers, const GenerationCall& call, const std::string& id,
                                           std::span<const ChoiceAnswer> choices, access::Visit& visit);

// Loop only. Destroying it cancels what still runs.
class RunningReviews {
 public:
  // Of submit_reviews().
  RunningReviews(const boost::asio::any_io_executor& executor, std::vector<Ticket> tickets);

  ChoiceStreams& streams() { return streams_; }

  // Returns when all have ended, with what ends the answer if one of them has failed; or before, when streams() were woken and `goes_on` says
  // no. One caller.
  boost::asio::awaitable<std::optional<Failure>> run(std::function<bool()> goes_on);

  // Once all have ended.
  void move_to(std::span<ChoiceAnswer> choices);

 private:
  std::optional<Failure> take(ChoiceEvent&& event);

  std::vector<ReviewAnswer> answers_;
  std::size_t running_;
  ChoiceStreams streams_;
};

}  // namespace braid::net
