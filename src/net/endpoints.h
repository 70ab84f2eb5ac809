// What answers each endpoint: a dialect's generation, or a response made at once.
#pragma once

#include <net/generation/generate.h>
#include <net/http/response.h>
#include <net/router.h>
#include <net/service.h>
#include <net/text/text_job.h>

#include <string>

namespace braid::net {

// Null when the endpoint does not generate.
const Dialect* dialect_of(Endpoint endpoint);

// Null when the endpoint does not work on texts alone.
const TextJob* text_job_of(Endpoint endpoint);

http::Response answer_now(Service& service, const Route& route, std::string& body);

}  // namespace braid::net
