// What answers each endpoint: a dialect's generation, or a response made at once.
#pragma once

#include "net/generation/dialect.h"
#include "net/http/response.h"
#include "net/router.h"
#include "net/service.h"
#include "net/text/text_job.h"

#include <string>
#include <string_view>

namespace braid::net {

// Null when the endpoint does not generate.
const Dialect* dialect_of(Endpoint endpoint);

// Null when the endpoint does not work on texts alone.
const TextJob* text_job_of(Endpoint endpoint);

// Whether it answers also without an API key, where the server has some.
bool is_open(Endpoint endpoint, const ServerOptions& options);

// An error instead of the endpoint's answer, in its dialect.
http::Response refuse(Endpoint endpoint, const Error& error);

// `client` is the name of the account whose request it is; empty: anonymous, or one without a key at an endpoint that needs none.
http::Response answer_now(Service& service, const Route& route, std::string& body, std::string_view client);

}  // namespace braid::net
