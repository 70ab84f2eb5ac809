// What a request about a network waits for.
#pragma once

#include "braid/predictor.h"
#include "braid/result.h"
#include "braid/tensor.h"
#include "net/http/connection.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace braid::net::predict {

// Runs `work`: here when it is about few bytes, else on the codec worker. kOverloaded; kCancelled: the client has gone. Everything outlives
// the wait. Loop only, as the next.
boost::asio::awaitable<Result<void>> run_text(Service& service, http::Connection& connection, std::size_t bytes,
                                              std::function<void()> work);

// `asked`: from when the deadlines of predictions count. kCancelled: the client has gone; kOverloaded, kTimeout: a deadline came first.
boost::asio::awaitable<Result<std::vector<Tensor>>> outputs_of(Service& service, http::Connection& connection, PendingPrediction& pending,
                                                               http::Clock::time_point asked);

}  // namespace braid::net::predict
