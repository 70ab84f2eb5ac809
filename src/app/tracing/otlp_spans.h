// Traces in the JSON of OTLP over HTTP: a span for each request, and one below it for each of its phases.
#pragma once

#include "net/log/trace.h"

#include <random>
#include <span>
#include <string>

namespace braid::app {

// The body of a request to /v1/traces. A request is a span of kind server, with OpenTelemetry's names of attributes where it has some; its
// phases are tokenise, queue, prefill, decode and write, as far as it came. Ids come from `random`.
std::string otlp_spans(std::span<const net::RequestTrace> traces, std::mt19937_64& random);

}  // namespace braid::app
