// An answer that is not streamed: its choices are gathered until all have ended.
#pragma once

#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/generation/choice_streams.h"
#include "net/generation/failure.h"
#include "net/generation/running_choices.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace braid::net {

class WholeAnswer {
 public:
  explicit WholeAnswer(std::size_t sequences) : gathered_(sequences) {}

  // Takes one event of `choices`. What ends the answer, if this does.
  std::optional<Failure> add(RunningChoices& choices, ChoiceEvent&& event);

  // Once all have ended: for each prompt the choices that `call` asks for, those of its candidates with the highest mean log-probability,
  // best first; of equals the earlier one.
  std::vector<ChoiceAnswer> take(const GenerationCall& call);

 private:
  std::vector<ChoiceAnswer> gathered_;
};

}  // namespace braid::net
