// What a rank does: it greets the server, loads what that names, and computes the passes that come.
#pragma once

#include "braid/result.h"
#include "ranks/channel.h"
#include "ranks/seat.h"

#include <string>

namespace braid::ranks {

// Its two connections to the server: what is handed out on the second one does not wait for passes.
struct Lines {
  Channel& passes;
  Channel& second;
};

// Until the server closes the connection, which is the ordinary end; an error when it is not reached any more. Waits without using the processor.
Result<void> serve_passes(const Lines& lines, const std::string& key, const Seat& seat);

}  // namespace braid::ranks
