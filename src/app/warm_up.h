// The first prefill and decode, so that the first request is as fast as the next.
#pragma once

#include "braid/engine.h"
#include "braid/result.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>

namespace braid::app {

// Sends one request of its own through the engine and waits for its end.
boost::asio::awaitable<Result<void>> warm_up(Engine& engine, std::int32_t context_length);

}  // namespace braid::app
