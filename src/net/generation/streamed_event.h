// One event of a streamed answer.
#pragma once

#include "braid/token_event.h"
#include "net/generation/answer_format.h"
#include "net/generation/choice_streams.h"
#include "net/generation/failure.h"
#include "net/generation/running_choices.h"

#include <optional>
#include <string>

namespace braid::net {

// Takes one event of `choices` and appends what has become of it in `format`; `so_far` is kept up to date by `choices`. What ends the
// answer, if this does: then what stands in `out` is not to be sent.
std::optional<Failure> append_event(std::string& out, AnswerFormat& format, RunningChoices& choices, ChoiceEvent&& event,
                                    const Usage& so_far);

}  // namespace braid::net
