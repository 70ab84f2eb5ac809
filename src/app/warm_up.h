// The first prefill and decode, so that the first request is as fast as the next.
#pragma once

#include "braid/engine.h"
#include "braid/result.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>

namespace braid::app {

// A prompt where nobody else waits for the strand, and one where others' next tokens do.
inline constexpr std::int32_t kWarmUpPrompt = 64;
inline constexpr std::int32_t kShortWarmUpPrompt = 4;

// Sends one request of its own through the engine and waits for its end.
boost::asio::awaitable<Result<void>> warm_up(Engine& engine, std::int32_t context_length, std::int32_t prompt_tokens = kWarmUpPrompt);

}  // namespace braid::app
