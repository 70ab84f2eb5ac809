// The choices of one request while they run: their events become texts, and what they use is counted.
#pragma once

#include "braid/engine.h"
#include "braid/signal.h"
#include "braid/text_codec.h"
#include "net/access/account.h"
#include "net/generation/answer_event.h"
#include "net/generation/call.h"
#include "net/generation/choice_streams.h"
#include "net/generation/choice_text.h"
#include "net/generation/failure.h"
#include "net/generation/usage_meter.h"
#include "net/service/service.h"

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace braid::net {

// What an event has ended: nothing, its choice, or the whole answer.
using Ended = std::variant<std::monostate, ChoiceEnd, Failure>;

// Loop only. Destroying it cancels what still runs.
class RunningChoices {
 public:
  // The candidates of the first prompt, then those of the second and so on. What is referred to outlives it.
  RunningChoices(const boost::asio::any_io_executor& executor, std::vector<Ticket> tickets, const TextCodec& codec,
                 const GenerationCall& call, Service& service, access::Visit& visit, UsageMeter& meter);

  std::size_t size() const { return choices_.size(); }
  bool all_ended() const { return running_ == 0; }
  ChoiceStreams& streams() { return streams_; }
  ChoiceText& text(std::uint32_t choice) { return choices_[choice].text; }
  std::vector<float>& vector(std::uint32_t choice) { return choices_[choice].vector; }

  // Takes one event of streams() into its choice's text.
  Ended take(ChoiceEvent&& event);

  void prefetch() const noexcept { prefetch_lines(choices_.data(), sizeof(Choice)); }

 private:
  struct Choice {
    ChoiceText text;
    ChoiceUsage usage;
    std::vector<float> vector = {};
  };

  Ended take_token(std::uint32_t choice, Token&& token);
  Ended take_finish(std::uint32_t choice, const Finish& finish);

  std::vector<Choice> choices_;
  std::size_t running_;  // those that have not ended
  ChoiceStreams streams_;
  UsageMeter& meter_;
  access::Visit& visit_;
};

}  // namespace braid::net
