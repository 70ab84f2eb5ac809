// GET /health, /livez, /readyz, /ping, /load and /version.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"
#include "net/service/changes.h"

#include <cstdint>
#include <string_view>

namespace braid::net::admin {

// As long as the loop runs.
http::Response livez();

// 200 when a generation would be accepted, and also without a model if that was asked for; 503 with the reason while loading,
// draining, or after a failed load. They differ in one word: exactly {"status":"ok"} is what other servers' clients look for.
http::Response health(const ServiceStatus& status);
// Likewise while the servers beside it (--peers) have what this one has not, or are still to be asked; null: there are none.
http::Response readyz(const ServiceStatus& status, const Changes* changes);

// vLLM's: how many requests are being answered.
http::Response load(std::uint64_t requests);

http::Response version(std::string_view version);

}  // namespace braid::net::admin
