// What a model is asked about whole answers before they are told: log-probabilities, vectors and scores of their tokens.
#pragma once

#include "braid/engine.h"
#include "braid/generation_request.h"
#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/generation/choice_streams.h"
#include "net/generation/failure.h"

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::net {

// For each choice a request for each of the call's reviews, of its prompt and all of its tokens. `models`: by whom, one for each review. `id`
// is the answer's.
std::vector<GenerationRequest> review_requests(const GenerationCall& call, const std::string& id, std::span<const ModelHold> models,
                                               std::span<const ChoiceAnswer> choices);

// Loop only. Destroying it cancels what still runs.
class RunningReviews {
 public:
  // Of review_requests().
  RunningReviews(const boost::asio::any_io_executor& executor, std::vector<Ticket> tickets);

  ChoiceStreams& streams() { return streams_; }
  bool all_ended() const { return running_ == 0; }

  // What ends the answer, if this does.
  std::optional<Failure> take(ChoiceEvent&& event);

  // Once all have ended.
  void move_to(std::span<ChoiceAnswer> choices);

 private:
  std::vector<ReviewAnswer> answers_;
  std::size_t running_;
  ChoiceStreams streams_;
};

}  // namespace braid::net
