// From a request's body to token ids.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/call.h"
#include "net/generation/dialect.h"
#include "net/service/codec_jobs.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

struct Prepared {
  ModelHold model;      // that the body names; null where the call is said at once, and the model only unloaded
  GenerationCall call;  // its constraint is compiled
  std::vector<std::vector<TokenId>> prompts;
};

// Finds the body's model, which may have to be loaded, reads the body and makes token ids of it: on the loop when that is quick; long bodies
// and constraints to be compiled go to the codec worker (run_codec_job). The body is used up.
// Everything outlives the wait.
boost::asio::awaitable<Result<Prepared>> prepare(Service& service, const Dialect& dialect, std::string_view client, std::string& body,
                                                 Abandonment& abandonment);

}  // namespace braid::net
