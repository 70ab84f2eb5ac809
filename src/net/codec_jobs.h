// Work on texts that is too long for the loop.
#pragma once

#include <braid/result.h>
#include <net/service.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <functional>

namespace braid::net {

// Runs `work` on the codec worker and returns when it has ended; what `work` refers to outlives that. kOverloaded when too many
// such jobs are there already, kCancelled when `abandoned` has turned true before its turn came: `work` has not run then. Loop
// only.
boost::asio::awaitable<Result<void>> run_codec_job(Service& service, const std::atomic<bool>& abandoned,
                                                   std::function<void()> work);

}  // namespace braid::net
