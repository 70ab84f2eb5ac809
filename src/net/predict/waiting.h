// What a request about a network waits for.
#pragma once

#include "braid/predictor.h"
#include "braid/result.h"
#include "braid/tensor.h"
#include "net/generation/deadlines.h"
#include "net/http/connection.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace braid::net::predict {

// The deadlines of a prediction that is asked for now.
Deadlines deadlines_of(const Service& service);

// Runs `work`: here when it is about few bytes, else on the codec worker. kOverloaded, kTimeout: also when a deadline came first; kCancelled:
// the client has gone. Everything outlives the wait. Loop only, as the next.
boost::asio::awaitable<Result<void>> run_text(Service& service, http::Connection& connection, const Deadlines& deadlines, Progress progress,
                                              std::size_t bytes, std::function<void()> work);

// Until then its asker may cancel it by its id. kCancelled: that, or the client has gone; kOverloaded, kTimeout: a deadline came first.
boost::asio::awaitable<Result<std::vector<Tensor>>> outputs_of(Service& service, http::Connection& connection, const Deadlines& deadlines,
                                                               const Asker& asker, PendingPrediction& pending);

}  // namespace braid::net::predict
